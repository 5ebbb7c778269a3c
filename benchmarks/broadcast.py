"""Messages, hops and load of one broadcast: arcs, flooding, and the paper's literal flooding.

    .venv/bin/python benchmarks/broadcast.py [--json] [--n 64 256 ...] [--origins 16]

Legitimate SR(n), one unit of time per hop. Sampled origins, the same for all three rules. The mean
of hops is over nodes and origins; 'hottest' is the node that sends most in one broadcast.
"""

import argparse
import json
from random import Random
from typing import Any

from planaria.studies.skipring.broadcast import RULES, broadcast, skip_ring

SIZES = [64, 256, 1024, 4096, 16384]


def measure(n: int, origins: int) -> list[dict[str, Any]]:
    graph = skip_ring(n)
    sample = sorted(Random(n).sample(range(n), min(n, origins)))
    rows = []
    for rule in RULES:
        runs = [broadcast(graph, origin, rule) for origin in sample]
        rows.append(
            {
                "n": n,
                "rule": rule,
                "origins": len(sample),
                "reached": min(len(run.hops) for run in runs),
                "messages": max(run.messages for run in runs),
                "hops_max": max(max(run.hops.values()) for run in runs),
                "hops_mean": sum(sum(run.hops.values()) for run in runs)
                / len(runs)
                / max(1, n - 1),
                "hottest_max": max(run.hottest for run in runs),
                "hottest_mean": sum(run.hottest for run in runs) / len(runs),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--n", type=int, nargs="+", default=SIZES)
    parser.add_argument("--origins", type=int, default=16)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not options.json:
        print(
            "      n  rule     messages  per node  hops max  hops mean  hottest max  hottest mean"
        )
    rows = []
    for n in options.n:
        for row in measure(n, options.origins):
            rows.append(row)
            if not options.json:
                print(
                    f"{n:7}  {row['rule']:7}  {row['messages']:8}  {row['messages'] / n:8.2f}"
                    f"  {row['hops_max']:8}  {row['hops_mean']:9.2f}  {row['hottest_max']:11}"
                    f"  {row['hottest_mean']:12.1f}",
                    flush=True,
                )
    if options.json:
        print(json.dumps(rows))


if __name__ == "__main__":
    main()
