"""Events over 10^5 processes, and the tables of section VII: what does gossip cost, what reaches?

    python benchmarks/gossip.py [--n 100000] [--runs 400] [--json]

Part 1: one group of n processes with given tables; deliveries per CPU second and memory per
process, beside the bare loop (a list per round, the same nodes and tables, no simulator).
Part 2: Figures 8 to 11 for stillborn and per-observer failures, the alternatives of section VI-E,
and the dials for targets with what simulation says of them.
"""

import argparse
import gc
import json
import platform
import time
import tracemalloc
from random import Random
from typing import Any

from planaria.core.chance import stream
from planaria.core.node import Deliver, Effect, Publish, Send
from planaria.lab.gossip.baselines import Work, compare
from planaria.lab.gossip.experiment import Setting, run
from planaria.lab.gossip.prediction import predict, reliability
from planaria.protocols.gossip.hierarchy import Hierarchy
from planaria.protocols.gossip.node import Configuration, GossipNode
from planaria.protocols.gossip.tables import give_tables
from planaria.simulator.delays import fixed
from planaria.simulator.engine import Entry, Simulator
from planaria.simulator.worlds.gossip import StillNode
from planaria.simulator.worlds.reach import estimated, summarize

SHARES = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]


class Handed:
    """Counts deliveries to applications."""

    kinds = ("effect",)

    def __init__(self) -> None:
        self.count = 0

    def record(self, tick: int, kind: str, node: int, entry: Entry, effect: object) -> None:
        self.count += isinstance(effect, Deliver)


def one_group(n: int) -> list[GossipNode]:
    """`n` processes interested in one topic, with given tables."""
    rng = stream(1, "benchmark")
    configuration = Configuration(Hierarchy())
    nodes: list[GossipNode] = [StillNode(id, configuration, rng) for id in range(n)]
    for node in nodes:
        node.subscribed = ["t"]
        node._repair()
    give_tables(nodes, rng)
    return nodes


def with_simulator(nodes: list[GossipNode]) -> dict[str, float]:
    """One event through the event-driven simulator."""
    simulator, handed = Simulator(1, delay=fixed(1)), Handed()
    for node in nodes:
        simulator.add(node)
    simulator.watch(handed)
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    simulator.command(0, Publish("t", b"event"))
    for _ in range(60):
        before = simulator.delivered
        simulator.run(1)
        if simulator.delivered == before:
            break
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return {
        "messages": simulator.delivered,
        "delivered": handed.count,
        "cpu_seconds": round(cpu, 2),
        "wall_seconds": round(wall, 2),
        "messages_per_cpu_second": round(simulator.delivered / cpu),
        "deliveries_per_cpu_second": round(handed.count / cpu),
    }


def with_bare_loop(nodes: list[GossipNode]) -> dict[str, float]:
    """The same event, the same nodes, a list per round and nothing else."""
    gc.collect()
    cpu = time.process_time()
    pending = list(nodes[1].on_command(Publish("t", b"bare")))
    messages, handed = 0, 0
    while pending:
        following: list[Effect] = []
        for effect in pending:
            if isinstance(effect, Send):
                messages += 1
                following += nodes[effect.target].on_message(effect.message)
            else:
                handed += isinstance(effect, Deliver)
        pending = following
    cpu = time.process_time() - cpu
    return {
        "messages": messages,
        "delivered": handed,
        "cpu_seconds": round(cpu, 2),
        "messages_per_cpu_second": round(messages / cpu),
        "deliveries_per_cpu_second": round(handed / cpu),
    }


def bytes_per_process(n: int) -> float:
    """Everything a process holds: views, sketches, neighbourhood, links."""
    gc.collect()
    tracemalloc.start()
    nodes = one_group(n)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del nodes
    return held / n


def figures(runs: int) -> list[dict[str, Any]]:
    """The tables of Figures 8 to 11: mean and half width of the 95 % interval."""
    rows = []
    for failures in ("stillborn", "observer"):
        for failed in SHARES:
            setting = Setting(failed=failed, failures=failures)
            chain = predict(setting)
            for level, group in enumerate(run(setting, runs, Random(7))):
                found = summarize(group)
                row: dict[str, Any] = {"failures": failures, "failed": failed, "group": f"T{level}"}
                for name in (
                    "sent", "intergroup_sent", "intergroup_received", "of_all", "of_alive", "p_all",
                ):  # fmt: skip
                    row[name] = round(found[name].mean, 4)
                    row[f"{name}_95"] = round(found[name].half, 4)
                row["of_all_predicted"] = round(chain[level].of_all, 4)
                rows.append(row)
    return rows


def targets(runs: int) -> list[dict[str, Any]]:
    """Dials for targets, what they promise and what simulation gives."""
    rows = []
    for target in (0.9, 0.99, 0.999, 0.9999):
        choice = reliability(target=target, loss=0.15)
        assert choice is not None
        groups = run(Setting(parameters=choice.parameters), runs, Random(9))
        everywhere = [float(all(row.p_all for row in event)) for event in zip(*groups, strict=True)]
        got = estimated(everywhere)
        rows.append(
            {
                "target": target,
                "g_a_z_c": choice.dials,
                "predicted": round(choice.predicted, 6),
                "simulated": got.mean,
                "simulated_95": round(got.half, 6),
                "messages": choice.messages,
                "memory": choice.memory,
            }
        )
    return rows


def alternatives(runs: int) -> list[dict[str, Any]]:
    """Section VI-E on the same work, on each level."""
    rows = []
    for level in (2, 1, 0):
        for name, it in compare(Work(level=level, runs=runs), Random(3)).items():
            rows.append(
                {
                    "level": level,
                    "approach": name,
                    "messages": round(it.messages.mean),
                    "memory": it.memory,
                    "parasites": round(it.parasites.mean),
                    "of_interested": round(it.of_interested.mean, 5),
                    "p_all": round(it.p_all.mean, 3),
                }
            )
    return rows


def table(rows: list[dict[str, Any]]) -> None:
    names = list(rows[0])
    print("  ".join(names))
    for row in rows:
        print("  ".join(str(row[name]) for name in names))
    print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    nodes = one_group(arguments.n)
    result: dict[str, Any] = {
        "python": platform.python_version(),
        "n": arguments.n,
        "simulator": with_simulator(nodes),
        "bare loop": with_bare_loop(nodes),
    }
    del nodes
    result["bytes_per_process"] = round(bytes_per_process(arguments.n))
    result["figures"] = figures(arguments.runs)
    result["targets"] = targets(arguments.runs)
    result["alternatives"] = alternatives(max(20, arguments.runs // 4))
    if arguments.json:
        print(json.dumps(result))
        return
    for name, value in result.items():
        if isinstance(value, list):
            print(name)
            table(value)
        else:
            print(f"{name}: {value}")


if __name__ == "__main__":
    main()
