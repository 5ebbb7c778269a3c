"""Sweeps on Spark against a plain loop over the same simulations; trace rows into Parquet.

Wall time, because that is what a user waits for: run it on a machine that does nothing else. All
run a few small ones first, so that no start of anything is in the figures. The cluster is a real
one, a master and two workers of one core on this machine; what it writes is compared byte for byte
with what `local[2]` writes.
"""

import argparse
import json
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pyarrow import parquet

from planaria.protocols.skipring.overlay import RingOverlay
from planaria.simulator.trace import Recorder
from planaria.simulator.trial import Spec, Trial
from planaria.spark.cluster import standalone
from planaria.spark.grid import Cell, crossed
from planaria.spark.sessions import LABORATORY, session
from planaria.spark.store import Store
from planaria.spark.sweep import Result, Sweep, Work, run_batch


def replay(cell: Cell) -> str:
    return f"planaria sim ring --n {cell.parameters['n']} --seed {cell.seed}"


def simulate(cell: Cell) -> Result:
    """A ring that heals from an arbitrary state."""
    outcome = Trial(RingOverlay(), Spec(int(cell.parameters["n"]), cell.seed, intervals=300)).run()
    return Result({"value": outcome.intervals})


def record(cell: Cell) -> Result:
    """The same with everything that happened as a table."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "trace")
        with Recorder(path, "everything", {"seed": str(cell.seed)}) as recorder:
            spec = Spec(int(cell.parameters["n"]), cell.seed, intervals=300)
            Trial(RingOverlay(), spec, [recorder]).run()
        return Result({"value": recorder.rows}, {"trace": parquet.read_table(path)})


def work(run: Callable[[Cell], Result]) -> Work:
    return Work("bench", {"value": "int64"}, run, replay)


def plain(cells: Sequence[Cell], run: Callable[[Cell], Result], out: Path) -> float:
    """Seconds of a loop in this process that writes the same files."""
    started = time.perf_counter()
    for cell in cells:
        run_batch(work(run), Store(str(out)), [cell])
    return time.perf_counter() - started


def on_spark(
    master: str, jobs: Sequence[tuple[Sequence[Cell], Callable[[Cell], Result]]], out: Path
) -> list[float]:
    """Seconds of each sweep, in one session."""
    seconds = []
    with session(master, LABORATORY) as spark:
        for number, (cells, run) in enumerate([(crossed({"n": [2]}, range(8)), record), *jobs]):
            sweep = Sweep(work(run), cells, str(out / f"{number}"))
            started = time.perf_counter()
            sweep.run(spark)
            seconds.append(time.perf_counter() - started)
    return seconds[1:]


def contents(directory: Path) -> dict[str, bytes]:
    """All result files below `directory`, by name."""
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(directory.rglob("*.parquet"))
    }


def measure(n: int, simulations: int, out: Path) -> dict[str, Any]:
    cells = crossed({"n": [n]}, range(simulations))
    plain(crossed({"n": [2]}, range(8)), record, out / "first")
    alone = plain(cells, simulate, out / "plain")
    alone_traced = plain(cells, record, out / "traced")
    jobs = [(cells, simulate), (cells, record)]
    one, one_traced = on_spark("local[1]", jobs, out / "one")
    two, two_traced = on_spark("local[2]", jobs, out / "two")
    with standalone() as master:
        cluster, cluster_traced = on_spark(master, jobs, out / "cluster")
    identical = contents(out / "cluster") == contents(out / "two")
    files = (out / "traced/trace").glob("*.parquet")
    rows = sum(parquet.ParquetFile(path).metadata.num_rows for path in files)
    return {
        "simulations": simulations,
        "n": n,
        "seconds": {"plain loop": alone, "local[1]": one, "local[2]": two, "cluster": cluster},
        "overhead_of_local_1": one / alone - 1,
        "times_local_1": one / two,
        "trace_rows": rows,
        "trace_rows_per_second": {
            "plain loop": rows / alone_traced,
            "local[1]": rows / one_traced,
            "local[2]": rows / two_traced,
            "cluster": rows / cluster_traced,
        },
        "cluster_identical": identical,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--n", type=int, default=40, help="nodes: 40 take about a second")
    parser.add_argument("--simulations", type=int, default=12)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    out = Path(tempfile.mkdtemp(prefix="planaria-bench-"))
    try:
        result = measure(arguments.n, arguments.simulations, out)
    finally:
        shutil.rmtree(out)
    if arguments.json:
        print(json.dumps({"python": platform.python_version(), **result}))
        return
    print(f"Python {platform.python_version()}, {sys.platform}, {result['simulations']} rings of")
    print(f"{result['n']} nodes, from an arbitrary state until legitimate; wall time\n")
    for name, seconds in result["seconds"].items():
        rows = result["trace_rows_per_second"][name]
        print(f"{name:<11} {seconds:>7.2f} s   with traces {rows:>9,.0f} rows/s into Parquet")
    print(
        f"\nlocal[1] costs {result['overhead_of_local_1']:.1%} (mark: 10%), "
        f"local[2] is {result['times_local_1']:.2f} x local[1] (mark: 1.7)"
    )
    same = "the same bytes as" if result["cluster_identical"] else "OTHER bytes than"
    print(f"a standalone cluster of two workers wrote {same} local[2]")


if __name__ == "__main__":
    main()
