"""A client believes no node: what it is given its publishers signed, or it goes elsewhere."""

from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from liars_lab import LIES, TRUE, Liars, Lie, altered, network, signed_by_the_liar, unsigned
from planaria.network.client.channel import Channel
from planaria.network.client.client import Client, connect
from planaria.network.client.distrust import Distrust
from planaria.network.client.errors import Untrusted
from planaria.network.client.places import Places
from planaria.network.client.verifying import Unsigned
from planaria.network.live import LiveNode
from planaria.network.tls import Credentials
from planaria.records.record import Draft, MalformedRecord, Record, seal
from secure_lab import Secure, run
from watched import until

PATIENCE = 30.0  # for a client to find a node that does not lie


def carol(lab: Secure, *nodes: LiveNode, **options: Any) -> Client:
    settings = {"credentials": lab.people["carol"], "patience": PATIENCE, **options}
    return connect([it.listen for it in nodes], **settings)


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
            assert liars.lies, "it was asked first"
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
        assert liars.lies

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
            await until(lambda: liars.lies)
            liars.nodes.clear()
            await first
            assert [(await anext(events)).payload for _ in TRUE] == TRUE

    run(tmp_path, test)


def test_another_topic_is_another_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    record = seal((7, bytes(12)), 3, [Draft(b"a")], time=1)
    one, other = Unsigned("news", record), Unsigned("other", record)
    channel = SimpleNamespace(access=SimpleNamespace(patience=10.0), leave=lambda _: None)
    now = [0.0]
    monkeypatch.setattr("asyncio.get_running_loop", lambda: SimpleNamespace(time=lambda: now[0]))
    distrust = Distrust(cast(Channel, channel))

    def leave(error: Unsigned, time: float, address: str, *servers: str) -> Untrusted | None:
        now[0], channel.address, channel.servers = time, address, servers
        return distrust.leave_at(error, Places())

    assert leave(one, 0.0, "a:1", "a:1", "b:1") is None
    assert leave(one, 11.0, "a:1", "a:1", "b:1") is None, "b:1 was not asked"
    assert leave(other, 12.0, "b:1", "a:1", "b:1") is None
    assert leave(one, 13.0, "b:1", "b:1") is None, "it is given time to heal"
    found = leave(one, 24.0, "b:1", "b:1")
    assert found is not None
    assert [*found.reasons] == ["b:1"]


def test_all_that_is_wrong_while_a_reader_comes_no_further_is_one_doubt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A liar may name another place each time."""
    records = [seal((7, bytes(12)), number, [Draft(b"a")], time=1) for number in (3, 4)]
    channel = SimpleNamespace(access=SimpleNamespace(patience=10.0), leave=lambda _: None)
    channel.address, channel.servers = "a:1", ["a:1"]
    now, places = [0.0], Places()
    monkeypatch.setattr("asyncio.get_running_loop", lambda: SimpleNamespace(time=lambda: now[0]))
    distrust = Distrust(cast(Channel, channel))
    assert distrust.leave_at(Unsigned("news", records[0]), places) is None
    now[0] = 11.0
    assert distrust.leave_at(Unsigned("news", records[1]), places) is not None
    places.take("news", (7, bytes(12)), 0, 1)
    assert distrust.leave_at(Unsigned("news", records[1]), places) is None, "it came further"
    for now[0] in (22.0, 33.0):
        assert distrust.leave_at(MalformedRecord("bytes"), places) is None


def test_a_liar_that_names_another_place_each_time_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = count()

    def anywhere(record: Record, liar: Credentials) -> Record:
        drafts = [Draft(b"false")] * record.count
        return seal(record.stream, next(numbers), drafts, time=record.time)

    async def test(lab: Secure) -> None:
        (liar,) = await network(lab, 1)
        Liars(anywhere, monkeypatch).add(liar)
        async with carol(lab, liar, patience=0.2) as client:
            async with client.subscribe("news", since="all") as events:
                with pytest.raises(Untrusted):
                    await anext(events)
            with pytest.raises(Untrusted):
                await client.read("news")

    run(tmp_path, test)
