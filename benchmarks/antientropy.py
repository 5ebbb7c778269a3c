"""Bytes and one-way messages until two subscribers hold the same publications.

    python benchmarks/antientropy.py [--json] [--seeds 5] [--sizes 1000 100000]

Accounting. Both hold N publications; d more are held by one side only, half by each. Publications
have 32-byte payloads, random 63-bit publishers, 64-bit incarnations and one time. Every message is
encoded with core.codec, topic 'news' included; framing and TCP are not counted.
`bytes` is everything on the wire, M1 (the digest on a periodic message) included. `overhead` is
`bytes` less the d publications themselves as they are encoded, once each: the same for all rows.
`bound` is what naming the differing publications costs if they are known: d ids of 64 bits.
Messages are one-way and include M1; `rounds` is the longest chain of answers.
Algorithm 5 is given the readings that can work (hash of hashes, `else` bound to the outer `if`),
alternate starts from both sides, and at most 12 starts; a '*' marks rows that were not equal then.
As printed (hash over labels, `else` under the inner `if`) it never asks for a missing node.
"""

import argparse
import json
from statistics import mean
from typing import Any

from planaria.studies.skipring.antientropy import METHODS, reconcile

DIFFERENCES = (1, 10, 100, 1_000, 10_000)


def case(size: int, difference: int, seed: int) -> dict[str, dict[str, Any]]:
    """All rows of one case."""
    runs = {method: reconcile(method, size, difference, seed) for method in METHODS}
    known = runs[METHODS[0]]
    rows = {"bound": row(known.bound, 0, 0, known.payload, True)}
    for method, run in runs.items():
        rows[method] = row(run.bytes, run.messages, run.rounds, run.payload, run.equal)
    return rows


def row(size: int, messages: int, rounds: int, payload: int, equal: bool) -> dict[str, Any]:
    return {
        "bytes": size,
        "overhead": size - payload,
        "messages": messages,
        "rounds": rounds,
        "equal": equal,
    }


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over seeds, and the worst number of messages and bytes."""
    return {
        "bytes": round(mean(run["bytes"] for run in runs)),
        "bytes_max": max(run["bytes"] for run in runs),
        "overhead": round(mean(run["overhead"] for run in runs)),
        "messages": round(mean(run["messages"] for run in runs), 1),
        "messages_max": max(run["messages"] for run in runs),
        "rounds_max": max(run["rounds"] for run in runs),
        "equal": sum(run["equal"] for run in runs) / len(runs),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 100_000])
    parser.add_argument("--differences", type=int, nargs="+", default=list(DIFFERENCES))
    options = parser.parse_args()
    table = []
    for size in options.sizes:
        for difference in (d for d in options.differences if d <= size):
            runs = [case(size, difference, seed) for seed in range(options.seeds)]
            for name in runs[0]:
                found = summary([run[name] for run in runs])
                table.append({"N": size, "d": difference, "rule": name, **found})
    if options.json:
        print(json.dumps(table, indent=1))
        return
    print(__doc__)
    head = f"{'N':>7} {'d':>6} {'rule':<12} {'bytes':>10} {'(max)':>10} {'overhead':>10}"
    print(head + f" {'messages':>9} {'(max)':>7} {'rounds':>7}")
    for line in table:
        mark = "" if line["equal"] == 1 else "*"
        print(
            f"{line['N']:>7} {line['d']:>6} {line['rule'] + mark:<12} {line['bytes']:>10}"
            f" {line['bytes_max']:>10} {line['overhead']:>10} {line['messages']:>9}"
            f" {line['messages_max']:>7} {line['rounds_max']:>7}"
        )


if __name__ == "__main__":
    main()
