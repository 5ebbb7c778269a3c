"""How fast is the simulator, and how small? Beside SimPy and a bare loop, doing the same work.

    python benchmarks/simulator.py [--n 10000 100000] [--intervals 3] [--repeat 3] [--json]

The work is a small ring-maintenance protocol: in every interval each node tells both neighbours
its id; whoever hears it compares and updates. All three drivers call the same node objects, draw
delays from the same table and keep the same fair timeouts. SimPy runs callbacks, its fastest way.
The bare loop is a bucket per tick and nothing else: no faults, no pause, no crash, no observers,
no message numbers. It is the ceiling for any driver of such nodes in this interpreter.
"""

import argparse
import gc
import json
import platform
import time
import tracemalloc
from collections import defaultdict
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import simpy

from planaria.core.chance import stream
from planaria.core.ids import NodeId
from planaria.core.message import Message
from planaria.core.node import NOTHING, Effects, Node, Send
from planaria.simulator.delays import DEFAULT_DELAY, INTERVAL, QUANTILES
from planaria.simulator.engine import Simulator


class Present(Message, frozen=True, tag="benchmark.present"):
    """I, `id`, am here."""

    id: NodeId


class RingNode(Node):
    """Keeps the closest id on either side, going round."""

    __slots__ = ("left", "right", "size")

    def __init__(self, id: NodeId, left: NodeId, right: NodeId, size: int) -> None:
        super().__init__(id)
        self.left, self.right, self.size = left, right, size

    def on_message(self, message: Message, sender: NodeId | None = None) -> Effects:
        assert type(message) is Present
        other, id, size = message.id, self.id, self.size
        if (other - id) % size < (self.right - id) % size and other != id:
            self.right = other
        elif (id - other) % size < (id - self.left) % size and other != id:
            self.left = other
        return NOTHING

    def on_timeout(self) -> Effects:
        me = Present(self.id)
        return [Send(self.left, me), Send(self.right, me)]


def ring(n: int) -> list[RingNode]:
    """A ring in which every fourth link is wrong, so that there is something to update."""
    rng = Random(1)
    nodes = [RingNode(id, (id - 1) % n, (id + 1) % n, n) for id in range(n)]
    for node in nodes[::4]:
        node.right = rng.randrange(n)
    return nodes


Driver = Callable[[Sequence[RingNode]], Callable[[int], int]]


def planaria(nodes: Sequence[RingNode]) -> Callable[[int], int]:
    """The simulator of this project."""
    simulator = Simulator(1)
    for node in nodes:
        simulator.add(node)

    def run(intervals: int) -> int:
        before = simulator.delivered
        simulator.run(intervals * INTERVAL)
        return simulator.delivered - before

    return run


def bare(nodes: Sequence[RingNode]) -> Callable[[int], int]:
    """A bucket per tick and nothing else."""
    draw, phase = stream(1, "delay").random, stream(1, "phase").random
    delay = DEFAULT_DELAY
    buckets: defaultdict[int, list[tuple[int, Message | None]]] = defaultdict(list)
    for node in nodes:
        buckets[1 + int(phase() * INTERVAL)].append((node.id, None))
    now = 0

    def run(intervals: int) -> int:
        nonlocal now
        delivered = 0
        for tick in range(now + 1, now + intervals * INTERVAL + 1):
            for target, message in buckets.pop(tick, ()):
                if message is None:
                    buckets[tick + INTERVAL].append((target, None))
                    effects = nodes[target].on_timeout()
                else:
                    delivered += 1
                    effects = nodes[target].on_message(message)
                for effect in effects:
                    if type(effect) is Send:
                        at = tick + delay[int(draw() * QUANTILES)]
                        buckets[at].append((effect.target, effect.message))
        now += intervals * INTERVAL
        return delivered

    return run


def with_simpy(nodes: Sequence[RingNode]) -> Callable[[int], int]:
    """SimPy with one event per message and per timeout, handled by callbacks."""
    environment = simpy.Environment()
    draw, phase = stream(1, "delay").random, stream(1, "phase").random
    delay, timeout = DEFAULT_DELAY, environment.timeout
    delivered = 0

    def perform(effects: Effects) -> None:
        for effect in effects:
            if type(effect) is Send:
                ticks = delay[int(draw() * QUANTILES)]
                timeout(ticks, (effect.target, effect.message)).callbacks.append(on_message)

    def on_message(event: Any) -> None:
        nonlocal delivered
        delivered += 1
        target, message = event.value
        effects = nodes[target].on_message(message)
        if effects:
            perform(effects)

    def on_timeout(event: Any) -> None:
        timeout(INTERVAL, event.value).callbacks.append(on_timeout)
        perform(nodes[event.value].on_timeout())

    for node in nodes:
        timeout(1 + int(phase() * INTERVAL), node.id).callbacks.append(on_timeout)

    def run(intervals: int) -> int:
        before = delivered
        environment.run(until=environment.now + intervals * INTERVAL)
        return delivered - before

    return run


DRIVERS: dict[str, Driver] = {"bare loop": bare, "planaria": planaria, "simpy": with_simpy}


def speed(driver: Driver, n: int, intervals: int) -> float:
    """Deliveries per CPU second, after one interval to warm up."""
    run = driver(ring(n))
    run(1)
    gc.collect()
    started = time.process_time()
    delivered = run(intervals)
    return delivered / (time.process_time() - started)


def size(driver: Driver, n: int) -> float:
    """Bytes per node of everything: the node, its clock and its messages in flight."""
    gc.collect()
    tracemalloc.start()
    run = driver(ring(n))
    run(1)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del run
    return held / n


def measure(n: int, intervals: int, repeat: int) -> dict[str, Any]:
    """The best of `repeat` rounds in which the drivers take turns."""
    best = dict.fromkeys(DRIVERS, 0.0)
    for _ in range(repeat):
        for name, driver in DRIVERS.items():
            best[name] = max(best[name], speed(driver, n, intervals))
    return {
        "n": n,
        "deliveries_per_cpu_second": {name: round(value) for name, value in best.items()},
        "bytes_per_node": {name: round(size(driver, n)) for name, driver in DRIVERS.items()},
        "times_simpy": round(best["planaria"] / best["simpy"], 2),
        "share_of_bare_loop": round(best["planaria"] / best["bare loop"], 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--n", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--intervals", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    results = [measure(n, arguments.intervals, arguments.repeat) for n in arguments.n]
    if arguments.json:
        print(json.dumps({"python": platform.python_version(), "results": results}))
        return
    print(f"Python {platform.python_version()}, best of {arguments.repeat}, CPU time\n")
    print(f"{'n':>8}  {'driver':<10} {'deliveries/s':>13} {'bytes/node':>11}")
    for result in results:
        for name in DRIVERS:
            rate, held = result["deliveries_per_cpu_second"][name], result["bytes_per_node"][name]
            print(f"{result['n']:>8}  {name:<10} {rate:>13,} {held:>11,}")
        print(
            f"{'':>8}  planaria: {result['times_simpy']} x SimPy (mark: 2), "
            f"{result['share_of_bare_loop']} of the bare loop (mark: 0.25)"
        )


if __name__ == "__main__":
    main()
