"""The live network beside other systems: the marks of issue 19, each with what was measured.

    python benchmarks/live.py [--json] [--quick] [--against zmq,nats,...]

One publisher, eight subscribers, 128 bytes, each a process of its own; medians over rounds in which
all systems take their turns; then late joiners replay what was stored, in turns too; then 4 of 16
nodes are killed while a client publishes, without and with the supervisor that serves its topic.
`planaria bench` measures the first and knows no marks.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import asdict

from planaria.core.errors import UsageError
from planaria.network.bench.contenders import OURS, PEERS, REPLAYS, contender, peers
from planaria.network.bench.killed import Survived, survive
from planaria.network.bench.measure import QUICK, Plan, Round, compare
from planaria.network.bench.replay import COUNT, replays
from planaria.network.bench.report import as_json, ratio_rows, ratios, rows
from planaria.network.loop import run

QUICK_REPLAY = 20_000
GAP_SECONDS = 1.0  # for which survivors wait at most
PLAN = Plan(rounds=3, seconds_max=165.0)  # with the late joiners below six minutes


class Mark(NamedTuple):
    """What one of our variants must reach beside a peer."""

    variant: str
    peer: str
    figure: str
    bound: float

    @property
    def at_least(self) -> bool:
        return self.figure.endswith("_per_s")

    def met(self, ratio: float) -> bool:
        return ratio >= self.bound if self.at_least else ratio <= self.bound


MARKS = (
    Mark("planaria", "zmq", "deliveries_per_s", 1.5),
    Mark("planaria", "zenoh", "deliveries_per_s", 1.0),
    Mark("planaria", "zmq", "cpu_us", 0.7),
    Mark("planaria-tls", "nats", "deliveries_per_s", 1.0),
    Mark("planaria-client", "nats", "deliveries_per_s", 0.7),
    Mark("planaria-durable", "jetstream", "deliveries_per_s", 2.0),
    Mark("planaria-client-durable", "jetstream", "deliveries_per_s", 2.0),
    Mark("planaria", "zmq", "p50_ms", 2.0),
    Mark("planaria", "zmq", "p99_ms", 4.0),
    Mark("planaria-replay", "redis-streams", "replayed_per_s", 1.0),
    Mark("planaria-replay-first", "redis-streams", "replayed_per_s", 1.0),
    Mark("planaria", "redis-streams", "replayed_per_s", 1.0),
)


def judge(results: Mapping[str, Round], replayed: Mapping[str, float]) -> list[tuple[Mark, float]]:
    """The marks that this run can judge, each with its ratio."""
    found = ratios(results)
    for mine, theirs in product(replayed, replayed):
        faster = {"replayed_per_s": replayed[mine] / replayed[theirs]}
        found.setdefault(mine, {}).setdefault(theirs, {}).update(faster)
    return [
        (mark, found[mark.variant][mark.peer][mark.figure])
        for mark in MARKS
        if mark.figure in found.get(mark.variant, {}).get(mark.peer, {})
    ]


def show(
    results: Mapping[str, Round],
    replayed: Mapping[str, float],
    judged: Sequence[tuple[Mark, float]],
) -> None:
    for table in (rows(results), ratio_rows(results)):
        for row in table:
            print("  ".join(f"{text:>16}" for text in row))
        print()
    for name, speed in replayed.items():
        print(f"{name}: a late joiner replays {speed:,.0f} publications/s")
    for mark, ratio in judged:
        sign = ">=" if mark.at_least else "<="
        met = "met" if mark.met(ratio) else "NOT met"
        print(f"{mark.variant} {mark.figure} {sign} {mark.bound} x {mark.peer}: {ratio:.2f}, {met}")


def survivors(directory: Path, *, quick: bool) -> dict[str, Survived]:
    """What survivors saw of kills, without and with the supervisor of their topic."""
    size = (8, 2) if quick else (16, 4)
    return {
        name: run(survive(directory / name, *size, supervisor=supervisor))
        for name, supervisor in (("members", False), ("a supervisor too", True))
    }


def show_survivors(found: Mapping[str, Survived]) -> None:
    for name, it in found.items():
        met = not it.lost and not it.twice and it.gap <= GAP_SECONDS
        print(
            f"killed, {name}: of {it.published} lost {it.lost}, twice {it.twice}, survivors waited "
            f"{it.gap:.2f} s at most (publisher {it.publisher_gap:.2f}), {'' if met else 'NOT '}met"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--against", default=",".join(PEERS))
    arguments = parser.parse_args()
    load, remarks = os.getloadavg()[0], list[str]()

    def report(line: str) -> None:
        remarks.append(line)
        print(line, file=sys.stderr)

    try:
        present = peers(arguments.against, report)
    except UsageError as error:
        parser.error(str(error))
    plan = QUICK if arguments.quick else PLAN
    with tempfile.TemporaryDirectory(prefix="planaria-bench-") as directory:
        results = run(compare([*map(contender, OURS), *present], plan, Path(directory), report))
        late = [contender(name) for name in REPLAYS]
        late = [it for it in late if it.name != "redis-streams" or contender("redis") in present]
        count = QUICK_REPLAY if arguments.quick else COUNT
        replayed = run(replays(late, Path(directory), report, count))
        survived = survivors(Path(directory), quick=arguments.quick)
    judged = judge(results, replayed)
    if arguments.json:
        marks = [{**m._asdict(), "ratio": ratio, "met": m.met(ratio)} for m, ratio in judged]
        said = {**as_json(results, plan, load), "replayed_per_s": replayed}
        killed = {name: asdict(it) for name, it in survived.items()}
        said |= {"marks": marks, "remarks": remarks, "killed": killed}
        print(json.dumps(said))
        return
    show(results, replayed, judged)
    print(f"late joiners replayed {count:,} publications each")
    show_survivors(survived)


if __name__ == "__main__":
    main()
