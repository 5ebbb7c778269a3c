"""How fair, how fast, how costly, how anonymous? Link reversal on seven graphs and in motion.

    python benchmarks/mobile.py [fairness cost convergence anonymity] [--seeds 10] [--json]

Fairness: 200 intervals from a legitimate start. Cost: one publication, rounds (intervals) until all
have it, copies sent; beside it plain flooding by reference (2|E| - n + 1 copies) and Table 4 as
printed, stopped after 40 rounds. Convergence: corrupt starts. Anonymity: how often some nodes that
watch name the publisher; they may know only the graph, or everybody's turns, and be silent.
"""

import argparse
import json
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from math import sqrt
from pathlib import Path
from typing import Any

from planaria.core.ids import NodeId
from planaria.lab.mobile import figures as figures
from planaria.lab.mobile.anonymity import bound, bound_of_first, walk_ends
from planaria.lab.mobile.attack import (
    Flood,
    Log,
    Watch,
    by_lessons,
    by_turns,
    floods,
    knowing_when,
    success,
)
from planaria.lab.mobile.variants import ORIENTATIONS, oriented
from planaria.simulator.trial import Spec, Trial

GRAPHS = ("path:64", "ring:64", "grid:8x8", "star:64", "complete:16", "rgg:64:8", "tree:64")
WALKS = (0, 8)
JUDGED = 3  # runs in which the one who learnt from the other runs guesses
Row = dict[str, Any]


def fairness(seeds: int) -> Iterator[Row]:
    """Executions per node and round, longest wait, from a legitimate start."""
    for orientation in ORIENTATIONS:
        for graph in GRAPHS:
            rows = [figures.fairness(graph, orientation, seed) for seed in range(seeds)]
            yield {
                "orientation": orientation,
                "graph": graph,
                "executions_per_round": mean(rows, "executions"),
                "max_min_ratio": mean(rows, "ratio"),
                "longest_wait": max(row["longest_wait"] for row in rows),
                "concurrency": mean(rows, "concurrency"),
            }


def cost(seeds: int) -> Iterator[Row]:
    """One publication by a random node after 10 intervals."""
    for graph in GRAPHS:
        found: Row = {"graph": graph}
        for orientation in ORIENTATIONS:
            rows = [figures.spread(graph, orientation, seed) for seed in range(seeds)]
            found |= {"links": mean(rows, "links"), f"{orientation}_rounds": mean(rows, "rounds")}
            found |= {f"{orientation}_sends": mean(rows, "sends")}
        walked = [figures.spread(graph, seed=seed, walk=WALKS[-1]) for seed in range(seeds)]
        found |= {"walk_rounds": mean(walked, "rounds"), "handed_over": mean(walked, "handed_over")}
        yield found | figures.printed(graph)


def convergence(seeds: int) -> Iterator[Row]:
    """Intervals until legitimate, from corrupt states, joins of all, and motion."""
    wanted = [("heights", graph, "corrupt") for graph in ("path:64", "grid:8x8", "rgg:64:8")]
    wanted += [(o, g, "fresh") for o in ("heights", "edge-bits") for g in ("grid:8x8", "rgg:64:8")]
    wanted += [(o, "waypoint:40", "fresh") for o in ("heights", "edge-bits")]
    for orientation, graph, start in wanted:
        rows, healed = [], []
        for seed in range(seeds):
            overlay = oriented(orientation, graph, publications=4)
            outcome = Trial(overlay, Spec(64, seed, start, intervals=500)).run()
            assert outcome.failure is None, outcome.failure
            rows.append(outcome.metrics)
            healed.append(outcome.intervals)
        yield {
            "orientation": orientation,
            "graph": graph,
            "start": start,
            "intervals_mean": sum(healed) / seeds,
            "intervals_max": max(healed),
            "missed": sum(row["missed"] for row in rows),
            "longest_wait": max(row["longest_wait"] for row in rows),
            "rounds": mean(rows, "rounds"),
        }


def anonymity(seeds: int) -> Iterator[Row]:
    """How often observers name the publisher; each cell is a mean over seeds and its error."""
    cases: list[tuple[str, tuple[NodeId, ...]]] = [("grid:8x8", (27,)), ("grid:8x8", (0,))]
    cases += [("grid:8x8", (9, 14, 49, 54)), ("ring:64", (0,)), ("ring:64", (0, 32))]
    cases += [("path:64", (31,)), ("star:64", (1,)), ("complete:16", (0,))]
    for graph, observers in cases:
        logs = [figures.turns(graph, seed=seed) for seed in range(seeds)]
        for silent in (False, True):
            watch = Watch(observers, silent)
            seen = [floods(log, watch) for log in logs]
            for walk in WALKS:
                yield guessed(graph, watch, walk, logs, seen)


def guessed(
    graph: str, watch: Watch, walk: int, logs: Sequence[Log], seen: Sequence[Sequence[Flood]]
) -> Row:
    """One row of the table of anonymity."""
    neighbours, observers = logs[0].neighbours, watch.observers
    ends = walk_ends(neighbours, observers, walk)
    knowing = [success(judged, ends, by_turns(judged, ends)) for judged in seen]
    learnt = []
    for number, judged in enumerate(seen[:JUDGED]):
        lessons = [flood for other, it in enumerate(seen) if other != number for flood in it]
        learnt.append(success(judged, ends, by_lessons(lessons, ends)))
    row: Row = {
        "graph": graph,
        "observers": len(observers),
        "silent": watch.silent,
        "walk": walk,
        "blind": 1 / len(ends),
        "learnt": around(learnt),
        "knowing_turns": around(knowing),
        "bound": bound(neighbours, observers, walk),
        "bound_of_first": bound_of_first(neighbours, observers),
    }
    if not walk:
        row["knowing_when"] = around([knowing_when(log, watch, 3) for log in logs])
    else:
        row["knowing_when"] = ""
    if watch.silent:
        return row | {"in_the_simulator": ""}
    named = [it for seed in range(2) for it in figures.guesses(graph, observers, walk, seed)]
    return row | {"in_the_simulator": wilson(sum(named), len(named))}


def around(values: Sequence[float]) -> str:
    """Mean and its 95 % interval, half as wide."""
    middle = sum(values) / len(values)
    spread = sum((value - middle) ** 2 for value in values) / max(1, len(values) - 1)
    return f"{middle:.3f} +- {1.96 * sqrt(spread / len(values)):.3f}"


def wilson(right: int, total: int) -> str:
    """A share with its 95 % interval."""
    z, share = 1.96, right / total
    middle = (share + z * z / (2 * total)) / (1 + z * z / total)
    half = z * sqrt(share * (1 - share) / total + z * z / (4 * total**2)) / (1 + z * z / total)
    return f"{share:.3f} ({middle - half:.3f}-{middle + half:.3f})"


def mean(rows: list[Row], name: str) -> float:
    return float(sum(row[name] for row in rows) / len(rows))


def show(title: str, rows: list[Row]) -> None:
    print(f"\n{title}")
    names = list(rows[0])
    cells = [[name.replace("_", " ") for name in names]]
    cells += [
        [f"{row[n]:.3g}" if isinstance(row[n], float) else str(row[n]) for n in names]
        for row in rows
    ]
    widths = [max(len(line[column]) for line in cells) for column in range(len(names))]
    for line in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)))


PARTS: dict[str, Callable[[int], Iterator[Row]]] = {
    "fairness": fairness,
    "cost": cost,
    "convergence": convergence,
    "anonymity": anonymity,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; or all")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    names = options.parts or list(PARTS)
    if wrong := [name for name in names if name not in PARTS]:
        parser.error(f"no part {wrong[0]!r}: {', '.join(PARTS)}")
    if not options.json:
        print(f"{Path(sys.executable).name} {platform.python_version()}, {options.seeds} seeds")
    found = {}
    for name in names:
        found[name] = list(PARTS[name](options.seeds))
        if not options.json:
            show(name, found[name])
    if options.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
