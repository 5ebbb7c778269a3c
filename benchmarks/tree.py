"""Figures 3 and 4 of the tree paper, and what a search for neighbours costs.

    .venv/bin/python benchmarks/tree.py [--json] [--networks 60] [--changes 10] [--hosts 10 20 ...]

Keys of 8 bits and a binary reference tree, as in the paper; means with 95 % intervals. Lookups:
the printed depth-first search beside ours, on the same hosts, for growing keys.
"""

import argparse
import json
from random import Random
from time import perf_counter
from typing import Any

from msgspec import to_builtins

from planaria.core.chance import stream
from planaria.core.ids import stable_hash
from planaria.lab.tree import Directory, degrees, host_tree, mean, measure
from planaria.literal.tree import LiteralTree, binary_parents, lookup_counts
from planaria.protocols.tree.reference_tree import BinaryTree, WideTree
from planaria.protocols.tree.search import neighbours

BITS = 8
HOSTS = list(range(10, 121, 10))
WIDE_NETWORKS = 40


def figures(hosts: list[int], networks: int, changes: int, seed: int) -> list[dict[str, Any]]:
    rows = []
    for n in hosts:
        rng = stream(seed, "figures", n)
        shape, area = measure(BinaryTree(BITS), n, networks, changes, rng)
        rows.append({"figure_3": to_builtins(shape), "figure_4": to_builtins(area)})
    return rows


def lookups(hosts: int, seed: int) -> list[dict[str, Any]]:
    """Lookups of one search: as printed (up to 14 bits) and ours."""
    rows = []
    for bits in (8, 10, 12, 14, 64, 160):
        rng = stream(seed, "lookups", bits)
        places = sorted({rng.getrandbits(bits) for _ in range(hosts)})
        view = Directory(BinaryTree(bits), places)
        ours = []
        for position in range(len(places)):
            before = view.lookups
            neighbours(view.keyset(position), view)
            ours.append(view.lookups - before)
        row: dict[str, Any] = {"bits": bits, "ours_mean": mean(ours).mean, "ours_max": max(ours)}
        if bits <= 14:
            printed = LiteralTree(binary_parents(0, (1 << bits) - 1), places)
            counts = lookup_counts(printed, printed.neighbours)
            row |= {"printed_mean": mean(counts).mean, "printed_max": max(counts)}
        rows.append(row)
    return rows


def wide(seed: int) -> list[dict[str, Any]]:
    """Hosts and networks beyond the degree of a wide reference tree, 120 hosts on 4096 keys."""
    rows = []
    for degree in (4, 5, 6):
        rng: Random = stream(seed, "wide", degree)
        tree = WideTree(degree, 4095)
        beyond = []
        for _ in range(WIDE_NETWORKS):
            counts = degrees(host_tree(tree, rng.sample(range(4096), 120)))
            beyond.append(sum(it > degree for it in counts.values()))
        rows.append(
            {
                "degree": degree,
                "hosts_beyond": sum(beyond) / (120 * WIDE_NETWORKS),
                "networks_with_one": sum(1 for it in beyond if it) / WIDE_NETWORKS,
            }
        )
    return rows


def large(n: int) -> dict[str, Any]:
    """All searches of `n` hosts with 160-bit keys, on one core."""
    places = [stable_hash("host", id) for id in range(n)]
    start = perf_counter()
    parents = host_tree(BinaryTree(160), places)
    seconds = perf_counter() - start
    return {
        "hosts": n,
        "seconds": seconds,
        "searches_per_second": n / seconds,
        "degree_max": max(degrees(parents).values()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--networks", type=int, default=60)
    parser.add_argument("--changes", type=int, default=10)
    parser.add_argument("--hosts", type=int, nargs="+", default=HOSTS)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    result = {
        "figures": figures(asked.hosts, asked.networks, asked.changes, asked.seed),
        "lookups": lookups(30, asked.seed),
        "wide": wide(asked.seed),
        "large": large(20_000),
    }
    if asked.json:
        print(json.dumps(result))
        return
    show(result)


def show(result: dict[str, Any]) -> None:
    print("Figure 3: share of hosts by degree          Figure 4: hosts in the area, with itself")
    print("  N   one          two          three       max   join          leave")
    for row in result["figures"]:
        shape, area = row["figure_3"], row["figure_4"]
        shares = "  ".join(_mean(shape["shares"][degree]) for degree in (1, 2, 3))
        print(f"{shape['hosts']:3}   {shares}  {shape['degree_max']}    ", end="")
        print(f"{_mean(area['join'])}   {_mean(area['leave'])}")
    print("\nLookups of one search, 30 hosts")
    for row in result["lookups"]:
        shown = "printed: not feasible"
        if "printed_mean" in row:
            shown = f"printed {row['printed_mean']:.1f} (max {row['printed_max']})"
        print(
            f"  {row['bits']:3} bits: ours {row['ours_mean']:.1f} (max {row['ours_max']}), {shown}"
        )
    for row in result["wide"]:
        print(
            f"degree {row['degree']}: {row['hosts_beyond']:.2%} of hosts beyond it, "
            f"{row['networks_with_one']:.0%} of networks have one"
        )
    row = result["large"]
    print(f"{row['hosts']} hosts, 160 bits: {row['searches_per_second']:.0f} searches per second")


def _mean(it: dict[str, float]) -> str:
    return f"{it['mean']:.2f} ±{it['interval']:.2f}"


if __name__ == "__main__":
    main()
