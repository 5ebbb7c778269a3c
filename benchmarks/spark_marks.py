"""All that Spark's source and sink are to reach on two quiet cores, in one run.

    python benchmarks/spark_marks.py [--json] [--quick]

Prints each mark with what was measured, then one line of JSON with all figures of
`spark_stream.py` and `spark_sink.py`, which say how; with `--json` that line alone. Meanwhile what
there is so far, on stderr. `--quick` is for a busy machine: few rows, one round.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from operator import ge, le
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from spark_sink import into_the_ring
from spark_stream import many_publishers, network, one_row, throughput

from planaria.spark import PlanariaDataSource, session


class Mark(NamedTuple):
    """A figure and how far it is to come."""

    name: str
    holds: Callable[[float, float], bool]
    wanted: float
    meaning: str


MARKS = (
    Mark("source_rows_per_s", ge, 300_000, "source, 8 columns"),
    Mark("source_over_rate", ge, 0.8, "the same by rate-micro-batch with 8 columns"),
    Mark("value_rows_per_s", ge, 500_000, "source, `value` alone"),
    Mark("sink_rows_per_s", ge, 40_000, "sink into a ring of 4"),
    Mark("one_row_ms", le, 500, "source, a batch of one row, median"),
    Mark("sink_one_row_ms", le, 500, "sink, a batch of one row, median"),
    Mark("plan_10k_s", le, 1.0, "10,000 publishers planned"),
)


def measure(*, quick: bool) -> Iterator[dict[str, float]]:
    rows, rounds = (240_000, 1) if quick else (1_200_000, 2)
    with tempfile.TemporaryDirectory() as directory, session("local[2]") as spark:
        spark.dataSource.register(PlanariaDataSource)
        with network(4, Path(directory)) as context:
            yield throughput(spark, context, rows, rounds)
            yield one_row(spark, context, 8 if quick else 20)
        with network(4, Path(directory) / "sink") as context:  # without what the other holds
            yield into_the_ring(spark, context, Path(directory) / "sink", quick=quick)
        with network(4, Path(directory) / "many") as context:
            yield many_publishers(context, 1 if quick else 5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    found: dict[str, float] = {}
    began = perf_counter()
    for part in measure(quick=arguments.quick):
        found |= {**part, "seconds": round(perf_counter() - began)}
        print(json.dumps(part), file=sys.stderr, flush=True)
    if not arguments.json:
        for name, holds, wanted, meaning in MARKS:
            sign = ">=" if holds is ge else "<="
            verdict = "reached" if holds(found[name], wanted) else "not reached"
            print(f"{meaning:45} {found[name]:>10,} {sign} {wanted:>9,} {verdict}")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
