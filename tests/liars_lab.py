"""Nodes that tell their clients something else than they hold, and honest ones beside them."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from planaria.core.node import Subscribe
from planaria.network.client.messages import ClientMessage, Pieces, Resolved
from planaria.network.gate.gate import Gate
from planaria.network.gate.session import Session
from planaria.network.host import Host
from planaria.network.live import LiveNode
from planaria.network.tls import Credentials
from planaria.records.evidence import PUBLISHED
from planaria.records.record import Draft, Record, decode, seal
from secure_lab import Secure

TRUE = [b'{"n": %d}' % number for number in range(6)]

Lie = Callable[[Record, Credentials], Record]


def unsigned(record: Record, liar: Credentials) -> Record:
    return seal(record.stream, record.first, [Draft(b"false")] * record.count, time=record.time)


def altered(record: Record, liar: Credentials) -> Record:
    data = bytearray(record.data)
    data[record.offsets().payload_data] ^= 1
    return decode(bytes(data))


def signed_by_the_liar(record: Record, liar: Credentials) -> Record:
    drafts, sign = [Draft(b"false")] * record.count, liar.sealer(PUBLISHED, "news")
    return seal(record.stream, record.first, drafts, time=int(time.time()), sign=sign)


def of_another_topic(record: Record, liar: Credentials) -> Record:
    """As its publisher signed it, elsewhere."""
    stream = (liar.identity.handle, record.incarnation)
    drafts, sign = [Draft(b"false")] * record.count, liar.sealer(PUBLISHED, "other")
    return seal(stream, record.first, drafts, time=int(time.time()), sign=sign)


LIES: Sequence[Lie] = (unsigned, altered, signed_by_the_liar, of_another_topic)


class Liars:
    """Nodes that tell their clients something else than they hold."""

    def __init__(self, lie: Lie, patch: pytest.MonkeyPatch) -> None:
        self.lie, self.lies = lie, 0
        self.nodes: dict[Host, Credentials] = {}
        for name in ("send", "answer"):
            patch.setattr(Session, name, self._lying(getattr(Session, name)))

    def add(self, node: LiveNode) -> None:
        assert node.host.credentials is not None
        self.nodes[node.host] = node.host.credentials

    def _lying(self, say: Callable[[Session, Any], Any]) -> Callable[[Session, Any], Any]:
        def said(session: Session, message: ClientMessage) -> Any:
            gate = session.connection.handler
            liar = self.nodes.get(gate.host) if isinstance(gate, Gate) else None
            if liar is not None and isinstance(message, Pieces) and message.pieces:
                pieces = [replace(it, record=self._false(it.record, liar)) for it in message.pieces]
                message = replace(message, pieces=pieces)
            elif liar is not None and isinstance(message, Resolved) and message.last:
                last = message.last.items()
                false = {at: replace(it, record=self._false(it.record, liar)) for at, it in last}
                message = replace(message, last=false)
            return say(session, message)

        return said

    def _false(self, data: bytes, liar: Credentials) -> bytes:
        self.lies += 1
        return self.lie(decode(data), liar).data


async def network(lab: Secure, count: int) -> list[LiveNode]:
    """Nodes that all hold what alice published."""
    nodes = [await lab.node() for _ in range(count)]
    for node in nodes:
        node.host.command(Subscribe("news"))
    async with lab.client("alice", nodes[0]) as alice:
        await alice.publish_many("news", TRUE, copies=count, strict=True)
    return nodes
