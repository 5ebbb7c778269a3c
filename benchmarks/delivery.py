"""What one delivery of the ring costs: decoding, storing, passing on, encoding, handing out.

    .venv/bin/python benchmarks/delivery.py [--json] [--n 9 64] [--records 1 8 32 128]

A legitimate ring without a simulator: every peer publishes records in turn, and each message is
encoded, decoded and handed to its target at once, until nothing is left to send. No time passes, so
nothing is audited and no digests are compared: this is the broadcast alone. CPU time per delivery
of a publication of `--bytes`, the best of `--repeat`.
"""

import argparse
import json
from collections import deque
from random import Random
from time import process_time
from typing import Any

from planaria.core.codec import Codec
from planaria.core.ids import NodeId
from planaria.core.node import Deliver, Effects, Publish, PublishMany, Send
from planaria.protocols.skipring.overlay import TOPIC, RingOverlay

RECORDS_MIN = 512  # the first of each publisher divides its arcs, for which a record of 32 paid 5 %


def run(n: int, publications: int, size: int, packed: int) -> tuple[float, int]:
    """The CPU seconds of the run, and how many deliveries it has."""
    nodes = {node.id: node for node in RingOverlay().legitimate(n, Random(n))}
    codec = Codec(RingOverlay.messages)
    encode, decode = codec.encode, codec.decode
    for id in range(n):  # the first leaves alone
        nodes[id].on_command(Publish(TOPIC, b"first"))
    deliveries, queue = 0, deque[tuple[NodeId, Effects]]()
    command = PublishMany(TOPIC, [Publish(TOPIC, bytes(size))] * packed)
    start = process_time()
    for number in range(publications // packed):
        here = number % n
        queue.append((here, nodes[here].on_command(command)))
        while queue:
            source, effects = queue.popleft()
            for effect in effects:
                if type(effect) is Send:  # this loop is in the figure: let it cost little
                    message = decode(encode(effect.message))
                    answer = nodes[effect.target].on_message(message, source)
                    queue.append((effect.target, answer))
                elif type(effect) is Deliver:
                    deliveries += len(effect.publications)
    return process_time() - start, deliveries


def measure(n: int, publications: int, size: int, packed: int, repeat: int) -> dict[str, Any]:
    """The best of `repeat` runs, of so many records at least that what happens once is little."""
    publications = max(publications, RECORDS_MIN * packed)
    spent, deliveries = min(run(n, publications, size, packed) for _ in range(repeat))
    assert deliveries == n * (publications // packed * packed)
    each = round(spent / deliveries * 1e6, 2)
    return {"n": n, "record": packed, "deliveries": deliveries, "us": each}


def main() -> None:
    """Print a row for each size of ring and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--n", type=int, nargs="+", default=[9, 64])
    parser.add_argument("--records", type=int, nargs="+", default=[1, 8, 32, 128])
    parser.add_argument("--publications", type=int, default=2048)
    parser.add_argument("--bytes", type=int, default=128)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [
        measure(n, options.publications, options.bytes, packed, options.repeat)
        for n in options.n
        for packed in options.records
    ]
    if options.json:
        print(json.dumps(rows))
        return
    print("    n  record  deliveries  us per delivery")
    for row in rows:
        print(f"{row['n']:5}  {row['record']:6}  {row['deliveries']:10}  {row['us']:15.2f}")


if __name__ == "__main__":
    main()
