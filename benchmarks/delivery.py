"""What one delivery of the ring costs: receiving, storing, passing on, handing out.

    .venv/bin/python benchmarks/delivery.py [--json] [--n 16 64] [--publications 200] [--bytes 100]

A legitimate ring without a simulator: every peer publishes in turn, and each message is handed to
its target at once, until nothing is left to send. No time passes, so nothing is audited and no
digests are compared: this is the broadcast alone. CPU time per delivery, the best of `--repeat`.
"""

import argparse
import json
from collections import deque
from random import Random
from time import process_time
from typing import Any

from planaria.core.ids import NodeId
from planaria.core.node import Deliver, Effects, Publish, Send
from planaria.protocols.skipring.overlay import TOPIC, RingOverlay


def run(n: int, publications: int, size: int) -> tuple[float, int]:
    """The CPU seconds of the run, and how many deliveries it has."""
    nodes = {node.id: node for node in RingOverlay().legitimate(n, Random(n))}
    deliveries, queue = 0, deque[tuple[NodeId, Effects]]()
    start = process_time()
    for number in range(publications):
        payload = number.to_bytes(8, "big") + bytes(size)
        queue.append((number % n, nodes[number % n].on_command(Publish(TOPIC, payload))))
        while queue:
            source, effects = queue.popleft()
            for effect in effects:
                if isinstance(effect, Send):
                    answer = nodes[effect.target].on_message(effect.message, source)
                    queue.append((effect.target, answer))
                else:
                    deliveries += isinstance(effect, Deliver)
    return process_time() - start, deliveries


def measure(n: int, publications: int, size: int, repeat: int) -> dict[str, Any]:
    """The best of `repeat` runs."""
    spent, deliveries = min(run(n, publications, size) for _ in range(repeat))
    assert deliveries == n * publications
    return {"n": n, "deliveries": deliveries, "us": spent / deliveries * 1e6}


def main() -> None:
    """Print a row for each size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--n", type=int, nargs="+", default=[16, 64])
    parser.add_argument("--publications", type=int, default=200)
    parser.add_argument("--bytes", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [measure(n, options.publications, options.bytes, options.repeat) for n in options.n]
    if options.json:
        print(json.dumps(rows))
        return
    print("    n  deliveries  us per delivery")
    for row in rows:
        print(f"{row['n']:5}  {row['deliveries']:10}  {row['us']:15.1f}")


if __name__ == "__main__":
    main()
