"""A client believes no node: what it is given its publishers signed, or it goes elsewhere."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from planaria.core.node import Subscribe
from planaria.network.client.channel import Channel
from planaria.network.client.client import Client, connect
from planaria.network.client.distrust import Distrust
from planaria.network.client.errors import Untrusted
from planaria.network.client.messages import ClientMessage, Pieces, Resolved
from planaria.network.client.verifying import Unsigned
from planaria.network.gate.gate import Gate
from planaria.network.gate.session import Session
from planaria.network.host import Host
from planaria.network.live import LiveNode
from planaria.network.tls import Credentials
from planaria.records.evidence import PUBLISHED
from planaria.records.record import Draft, Record, decode, seal
from secure_lab import Secure, run
from watched import until

PATIENCE = 30.0  # for a client to find a node that does not lie
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
        self.lie, self.told = lie, 0
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
        self.told += 1
        return self.lie(decode(data), liar).data


async def network(lab: Secure, count: int) -> list[LiveNode]:
    """Nodes that all hold what alice published."""
    nodes = [await lab.node() for _ in range(count)]
    for node in nodes:
        node.host.command(Subscribe("news"))
    async with lab.client("alice", nodes[0]) as alice:
        await alice.publish_many("news", TRUE, copies=count)
    return nodes


def carol(lab: Secure, *nodes: LiveNode, **options: Any) -> Client:
    told = {"credentials": lab.people["carol"], "patience": PATIENCE, **options}
    return connect([it.listen for it in nodes], **told)


@pytest.mark.parametrize("lie", LIES)
def test_a_client_takes_nothing_from_a_node_that_lies(
    lie: Lie, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(lab: Secure) -> None:
        honest, liar = await network(lab, 2)
        liars = Liars(lie, monkeypatch)
        liars.add(liar)
        async with carol(lab, liar, honest) as client:
            async with client.subscribe("news", since="all") as events:
                assert [(await anext(events)).payload for _ in TRUE] == TRUE
                assert events.channel.address == honest.listen
            assert liars.told, "it was asked first"
        async with carol(lab, liar, honest) as client:
            assert [it.payload for it in (await client.read("news")).events] == TRUE
        async with (
            carol(lab, liar, honest) as client,
            client.subscribe("news", since="last") as events,
        ):
            assert (await anext(events)).payload == TRUE[-1]
        async with carol(lab, liar, honest, verify=False) as client:
            assert [it.payload for it in (await client.read("news")).events] != TRUE, "it is a lie"

    run(tmp_path, test)


def test_where_selects_in_signed_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(lab: Secure) -> None:
        honest, liar = await network(lab, 2)
        liars = Liars(signed_by_the_liar, monkeypatch)
        liars.add(liar)
        for verify in (True, False):
            nodes = (liar, honest) if verify else (honest,)
            async with carol(lab, *nodes, verify=verify) as client:
                wanted = "n = 1 OR n = 2 OR n = 4"
                async with client.subscribe("news", since="all", where=wanted) as events:
                    found = [(await anext(events)).payload for _ in range(3)]
                    assert found == [TRUE[1], TRUE[2], TRUE[4]]
                    places = events.vector()["topics"]["news"]
                    assert [*places.values()] == [6], "what it left out is read"
        assert liars.told

    run(tmp_path, test)


def test_a_client_of_liars_alone_says_so_when_its_patience_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(lab: Secure) -> None:
        (liar,) = await network(lab, 1)
        Liars(unsigned, monkeypatch).add(liar)
        async with carol(lab, liar, patience=0.2) as client:
            async with client.subscribe("news", since="all") as events:
                with pytest.raises(Untrusted, match=r"is not signed by it.*former\.pem"):
                    await anext(events)
            with pytest.raises(Untrusted, match="number 0 of"):
                await client.read("news")

    run(tmp_path, test)


def test_a_node_that_heals_is_believed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(lab: Secure) -> None:
        (node,) = await network(lab, 1)
        liars = Liars(altered, monkeypatch)
        liars.add(node)
        async with (
            carol(lab, node) as client,
            client.subscribe("news", since="all") as events,
        ):
            await events.ready()
            first = events._advance()
            await until(lambda: liars.told)
            liars.nodes.clear()
            await first
            assert [(await anext(events)).payload for _ in TRUE] == TRUE

    run(tmp_path, test)


def test_another_place_is_another_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    record = seal((7, bytes(12)), 3, [Draft(b"a")], time=1)
    one, other = Unsigned("news", record), Unsigned("other", record)
    channel = SimpleNamespace(access=SimpleNamespace(patience=10.0), leave=lambda _: None)
    now = [0.0]
    monkeypatch.setattr("asyncio.get_running_loop", lambda: SimpleNamespace(time=lambda: now[0]))
    distrust = Distrust(cast(Channel, channel))

    def told(error: Unsigned, time: float, address: str, *servers: str) -> Untrusted | None:
        now[0], channel.address, channel.servers = time, address, servers
        return distrust.leave(error)

    assert told(one, 0.0, "a:1", "a:1", "b:1") is None
    assert told(one, 11.0, "a:1", "a:1", "b:1") is None, "b:1 was not asked"
    assert told(other, 12.0, "b:1", "a:1", "b:1") is None
    assert told(one, 13.0, "b:1", "b:1") is None, "it is given time to heal"
    found = told(one, 24.0, "b:1", "b:1")
    assert found is not None
    assert [*found.reasons] == ["b:1"]
