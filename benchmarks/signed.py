"""What signatures cost: a ring whose members check every record beside one without keys.

    .venv/bin/python benchmarks/signed.py [--json] [--n 9] [--records 1 128]

A client seals records, and signs them or not; a legitimate ring without a simulator spreads each,
every message encoded and decoded, as in `delivery.py`. Both kinds take turns. CPU time of client
and members for each publication, the best of `--repeat`, the ratio of the two, and bytes of a
record.
"""

import argparse
import json
import time
from collections import deque
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from planaria.core.codec import Codec
from planaria.core.ids import NodeId
from planaria.core.node import Deliver, Effects, Node, Send, Subscribe
from planaria.network.admission import Admissions
from planaria.network.identity import found_cluster, issue
from planaria.network.tls import Credentials
from planaria.protocols.skipring.deposit_messages import Deposit
from planaria.protocols.skipring.overlay import TOPIC, RingOverlay
from planaria.protocols.skipring.peer import Peer
from planaria.records.evidence import PUBLISHED
from planaria.records.record import Draft, seal

ENTRY = 1 << 40  # a node that is not in the ring


class SignedOverlay(RingOverlay):
    """A ring whose members judge records by real certificates."""

    def __init__(self, admissions: Admissions) -> None:
        super().__init__()
        self._admissions = admissions

    def spawn(self, id: NodeId, rng: Random) -> Node:
        """A peer that judges."""
        if id in self.supervisors:
            return super().spawn(id, rng)
        peer = Peer(id, self.supervisors, rng, admission=self._admissions)
        peer.on_command(Subscribe(self.topic))
        return peer


def run(overlay: RingOverlay, client: Credentials, n: int, records: int, packed: int) -> float:
    """The CPU seconds in which so many records reach all members."""
    signed = isinstance(overlay, SignedOverlay)
    sign = client.sealer(PUBLISHED, TOPIC) if signed else None
    nodes = {node.id: node for node in overlay.legitimate(n, Random(n))}
    codec, now, drafts = Codec(RingOverlay.messages), int(time.time()), [Draft(bytes(128))] * packed
    stream = (client.identity.handle, bytes(12))
    deliveries, queue = 0, deque[tuple[NodeId, Effects]]()
    start = time.process_time()
    for number in range(records):
        here = number % n
        record = seal(stream, number * packed, drafts, time=now, sign=sign)
        deposit = Deposit(TOPIC, ENTRY, record.data, True)
        queue.append((here, nodes[here].on_message(deposit, ENTRY)))
        while queue:
            source, effects = queue.popleft()
            for effect in effects:
                if isinstance(effect, Send) and effect.target != ENTRY:
                    message = codec.decode(codec.encode(effect.message))
                    answer = nodes[effect.target].on_message(message, source)
                    queue.append((effect.target, answer))
                elif isinstance(effect, Deliver):
                    deliveries += len(effect.publications)
    spent = time.process_time() - start
    assert deliveries == n * records * packed
    return spent


def measure(client: Credentials, n: int, packed: int, repeat: int) -> dict[str, Any]:
    """Both kinds in turn; the best of each."""
    records = max(16, 512 // packed)
    kinds = {"plain": RingOverlay(), "signed": SignedOverlay(Admissions(client))}
    best = dict.fromkeys(kinds, float("inf"))
    for _ in range(repeat):
        for name, overlay in kinds.items():
            best[name] = min(best[name], run(overlay, client, n, records, packed))
    each = {name: round(spent / records / packed * 1e6, 2) for name, spent in best.items()}
    ratio = round(best["signed"] / best["plain"], 2)
    drafts, stream = [Draft(bytes(128))] * packed, (client.identity.handle, bytes(12))
    sign = client.sealer(PUBLISHED, TOPIC)
    sizes = [len(seal(stream, 0, drafts, time=0, sign=it).data) for it in (None, sign)]
    return {"n": n, "record": packed, **each, "ratio": ratio, "bytes": sizes}


def main() -> None:
    """Print a row for each size of ring and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--n", type=int, nargs="+", default=[9])
    parser.add_argument("--records", type=int, nargs="+", default=[1, 8, 32, 128])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with TemporaryDirectory(prefix="planaria-signed-") as home:
        found_cluster(Path(home) / "keys", "bench")
        client = Credentials(issue(Path(home) / "keys", "client", ("client",)))
        rows = [
            measure(client, n, packed, options.repeat)
            for n in options.n
            for packed in options.records
        ]
    if options.json:
        print(json.dumps(rows))
        return
    print("    n  record  us plain  us signed  ratio  bytes plain, signed")
    for row in rows:
        line = f"{row['n']:5}  {row['record']:6}  {row['plain']:8.2f}  {row['signed']:9.2f}"
        print(f"{line}  {row['ratio']:5.2f}  {row['bytes'][0]}, {row['bytes'][1]}")


if __name__ == "__main__":
    main()
