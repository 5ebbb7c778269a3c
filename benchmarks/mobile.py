"""How fair, how fast, how costly, how anonymous? Link reversal on seven graphs and in motion.

    python benchmarks/mobile.py [--seeds 2] [--json]

Fairness: 200 intervals from a legitimate start. Cost: one publication, rounds (intervals) until all
have it, copies sent; beside it plain flooding by reference (2|E| - n + 1 copies, eccentricity in
hops) and Table 4 as printed, stopped after 40 rounds. Convergence: corrupt starts. Anonymity: one
node or a few watch, every other node publishes six times.
"""

import argparse
import json
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from planaria.core.chance import stream
from planaria.core.ids import NodeId
from planaria.core.node import Publish
from planaria.literal.mobile import graph_of, table_4
from planaria.protocols.mobile.anonymity import Sighting, best_guess, bound, first_sender
from planaria.protocols.mobile.graphs import parse_graph
from planaria.protocols.mobile.messages import Beat
from planaria.simulator.engine import Entry
from planaria.simulator.mobility import MovingOverlay
from planaria.simulator.trial import Spec, Trial

TOPIC = "layer/0"
GRAPHS = ("path:64", "ring:64", "grid:8x8", "star:64", "complete:16", "rgg:64:8", "tree:64")
Row = dict[str, Any]


def fairness(seeds: int) -> Iterator[Row]:
    """Executions per node and round, longest wait, from a legitimate start."""
    for orientation in ("heights", "three-state", "edge-bits"):
        for graph in GRAPHS:
            rows = []
            for seed in range(seeds):
                overlay = MovingOverlay(graph, orientation)
                trial = Trial(overlay, Spec(64, seed, "legitimate"))
                trial.simulator.run(20_000)
                rows.append(overlay.metrics(trial.simulator.nodes))
            yield {
                "orientation": orientation,
                "graph": graph,
                "executions_per_round": mean(rows, "executions_per_round"),
                "max_min_ratio": mean(rows, "executions_max_min_ratio"),
                "longest_wait": max(row["longest_wait"] for row in rows),
                "concurrency": mean(rows, "concurrency"),
            }


def cost(seeds: int) -> Iterator[Row]:
    """One publication by a random node after 10 intervals."""
    for graph in GRAPHS:
        found: Row = {"graph": graph}
        for orientation in ("heights", "three-state", "edge-bits"):
            rounds, copies, links = [], [], []
            for seed in range(seeds):
                overlay = MovingOverlay(graph, orientation)
                trial = Trial(overlay, Spec(64, seed, "legitimate"))
                trial.simulator.run(1000)
                publisher = stream(seed, "publisher").choice(sorted(trial.simulator.nodes))
                trial.simulator.command(publisher, Publish(TOPIC, b"x"))
                books = overlay.world.books
                while len(books.publications[b"x"].arrivals) < len(trial.simulator.nodes):
                    trial.simulator.run_interval()
                rounds.append(books.rounds())
                trial.simulator.run(2000)
                copies.append(books.copies)
                graph_now = overlay.world.graph(trial.simulator.nodes)
                links.append(sum(map(len, graph_now.values())) // 2)
            found |= {"links": sum(links) / seeds, f"{orientation}_rounds": sum(rounds) / seeds}
            found |= {f"{orientation}_sends": sum(copies) / seeds}
        yield found | printed(graph)


def printed(graph: str) -> Row:
    """Table 4 as printed, with sets, for 40 rounds; and what plain flooding sends."""
    drawn = parse_graph(graph, 64, Random(0))
    n = drawn.n
    lids = tuple(Random(1).sample(range(n), n))
    copies = table_4(graph_of(n, drawn.edges), lids, 0, 40, lists=False)
    return {"table_4_in_40": sum(copies), "flooding": 2 * len(drawn.edges) - n + 1}


def convergence(seeds: int) -> Iterator[Row]:
    """Intervals until legitimate, from corrupt states, joins of all, and motion."""
    wanted = [("heights", graph, "corrupt") for graph in ("path:64", "grid:8x8", "rgg:64:8")]
    wanted += [(o, g, "fresh") for o in ("heights", "edge-bits") for g in ("grid:8x8", "rgg:64:8")]
    wanted += [(o, "waypoint:40", "fresh") for o in ("heights", "edge-bits")]
    for orientation, graph, start in wanted:
        rows, healed = [], []
        for seed in range(seeds):
            overlay = MovingOverlay(graph, orientation, publications=4)
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


class Watch:
    """The first copy of each publication at the observers."""

    kinds = ("deliver",)

    def __init__(self, observers: list[NodeId]) -> None:
        self.observers = observers
        self.first: dict[bytes, tuple[NodeId, NodeId]] = {}

    def record(self, tick: int, kind: str, node: NodeId, entry: Entry, effect: object) -> None:
        beat = entry.message
        if node in self.observers and isinstance(beat, Beat) and beat.sender not in self.observers:
            for item in beat.items:
                self.first.setdefault(item.payload, (beat.sender, node))


def sightings(graph: str, observers: list[NodeId], seed: int) -> list[Sighting]:
    """Every honest node publishes six times, in random order."""
    watch = Watch(observers)
    trial = Trial(MovingOverlay(graph), Spec(64, seed, "legitimate"), [watch])
    rng = stream(seed, "publishers")
    turns = [id for id in sorted(trial.simulator.nodes) if id not in observers] * 6
    rng.shuffle(turns)
    publishers = {b"%d" % number: id for number, id in enumerate(turns)}
    for payload, publisher in publishers.items():
        trial.simulator.command(publisher, Publish(TOPIC, payload))
        trial.simulator.run(rng.randrange(50, 150))
    trial.simulator.run(10_000)
    return [Sighting(watch.first.get(payload), id) for payload, id in publishers.items()]


def anonymity() -> Iterator[Row]:
    """How often observers name the publisher."""
    cases = [("grid:8x8", [27]), ("grid:8x8", [0]), ("grid:8x8", [9, 14, 49, 54])]
    cases += [("ring:64", [0]), ("star:64", [1]), ("star:64", [0])]
    for graph, observers in cases:
        neighbours = parse_graph(graph, 64, Random(0)).neighbours()
        learnt, judged = (sightings(graph, observers, seed) for seed in (1, 2))
        yield {
            "graph": graph,
            "observers": len(observers),
            "blind_guess": 1 / (len(neighbours) - len(observers)),
            "first_sender": first_sender(judged),
            "best_guess": best_guess(learnt, judged),
            "bound": bound(neighbours, observers),
        }


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


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    parts: dict[str, list[Row]] = {
        "fairness": list(fairness(options.seeds)),
        "cost of one publication": list(cost(options.seeds)),
        "convergence": list(convergence(options.seeds)),
        "anonymity": list(anonymity()),
    }
    if options.json:
        print(json.dumps(parts))
        return
    print(f"{Path(sys.executable).name} {platform.python_version()}, {options.seeds} seeds")
    for title, rows in parts.items():
        show(title, rows)


if __name__ == "__main__":
    main()
