"""Publications wait outside of a part that has much to send, and none of them is lost in it."""

import asyncio
import gc
from asyncio import Event
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from others_lab import OthersLab, heard
from planaria.core.node import Publish, Subscribe
from planaria.network import pace
from planaria.network.client.messages import Failed, Put, Stored
from planaria.network.connection import Connection
from planaria.network.gate.held import HELD_SECONDS
from planaria.network.overlays import content, mobile
from planaria.network.overlays.content import ContentPart
from planaria.network.overlays.mobile import MobilePart
from planaria.network.pace import Pacing, room
from planaria.protocols.mobile.dissemination import Outbox
from planaria.protocols.mobile.link import UP, Link
from planaria.protocols.routing.messages import ID_BYTES, Beat
from planaria.protocols.routing.node import Broker
from planaria.records.record import INCARNATION_BYTES, Draft, Record, seal


def record(*payloads: bytes) -> Record:
    return seal((1, bytes(INCARNATION_BYTES)), 0, [Draft(it) for it in payloads], time=1)


def broker() -> ContentPart:
    part = ContentPart(1, Random(0))
    part.node.strategy = "flooding"  # all neighbours want everything
    part.node.link_up(2)
    part.node.link_up(3)
    return part


def published(part: ContentPart, count: int) -> None:
    for number in range(count):
        part.node.on_command(Publish("news", b"%d" % number, {"number": number}))


def test_content_has_no_room_while_a_neighbour_has_to_get_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(content, "UNSENT_MAX", 5)
    part = broker()
    published(part, 4)
    assert part.has_room("news")
    published(part, 1)
    assert not part.has_room("news")
    first, second = part.node.links.values()
    first.acknowledge([*first.outgoing])
    assert not part.has_room("news"), "the other one has nothing yet"
    second.acknowledge([*second.outgoing][:1])
    assert part.has_room("news")


def test_content_keeps_few_publications_on_disk_and_all_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(content, "KEPT_MAX", 5)
    for count, kept in (5, 5), (6, 0):
        part = broker()
        part.node.on_command(Subscribe("news", client=1))
        published(part, count)
        again = ContentPart(1, Random(1))
        assert not [*again.node.restore(part.kept())]
        Broker.on_timeout(again.node)  # but for the tree
        assert len(again.node.memory.lately()) == kept
        assert all(len(it.outgoing) == kept for it in again.node.links.values())
        assert sum(map(len, again.node.memory.seen)) == count, "against duplicates"
        assert [*again.node.links] == [2, 3]
        assert again.node.clients == part.node.clients


def test_mobile_has_room_for_so_many_between_two_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mobile, "UNSENT_MAX", 5)
    part = MobilePart(1, Random(0))
    assert part.has_room("news"), "it joins first"
    part.node.on_command(Subscribe("news"))
    layer = part.node.layers["news"]

    def publish(count: int) -> None:
        for command, _ in part.published("news", record(*[b"x"] * count)):
            part.node.on_command(command)

    publish(9)
    assert part.has_room("news"), "there is nobody to send it to"
    layer.news.local = {}
    monkeypatch.setattr(type(layer), "neighbours", lambda _: [2])
    assert part.has_room("news")
    publish(4)
    assert part.has_room("news")
    publish(2)
    assert not part.has_room("news")
    layer.news.now += 1
    assert not part.has_room("news"), "nobody has them yet"
    news = layer.news
    news.local = dict.fromkeys([*news.local][:4])
    assert not part.has_room("news"), "it is counted once in a timeout"
    layer.news.now += 1
    assert part.has_room("news")


def test_mobile_counts_what_a_neighbour_lacks_but_for_what_is_only_shown_again() -> None:
    part = MobilePart(1, Random(0))
    part.node.on_command(Subscribe("news"))
    layer = part.node.layers["news"]
    items = [layer.publish(b"%d" % number, Random(number)) for number in range(6)]
    assert layer.news.unsent([]) == 6
    ids = [it.id for it in items]
    layer.news.local = {}
    generation = items[0].generation
    new = Outbox(waiting={ids[0]: generation, ids[1]: generation - 1}, sent={ids[2]: generation})
    more = Outbox(waiting=dict.fromkeys(ids[:4], generation))
    assert layer.news.unsent([new]) == 2
    layer.links = {2: Link(UP, outbox=new), 3: Link(UP, outbox=more)}
    assert layer.news.unsent(layer.outboxes()) == 4
    layer.news.input = {ids[5]: []}
    layer.news.walking = {ids[4]: True}
    assert layer.news.unsent(layer.outboxes()) == 6


@pytest.mark.parametrize("overlay", ["content", "mobile"])
def test_what_a_part_has_no_room_for_waits_for_it(
    overlay: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And leaves in its order, as soon as there is room: nobody waits for a timeout."""
    lab = OthersLab()
    session = lab.session()
    room = False
    part = lab.others.part(overlay)
    monkeypatch.setattr(part, "has_room", lambda _: room)

    async def main() -> None:
        nonlocal room
        for request in (1, 2, 3):
            lab.put(session, request, overlay, b"%d" % request)
        for _ in range(3):
            lab.now += HELD_SECONDS / 3
            lab.others.on_timeout()
            await asyncio.sleep(0.03)
        assert heard(session) == []
        room = True
        async with asyncio.timeout(10):
            while len(heard(session)) < 3:
                await asyncio.sleep(0.01)
        assert [it.request for it in heard(session) if isinstance(it, Stored)] == [1, 2, 3]
        message = Put(4, "news", lab.record(b"4").data, overlay=overlay)
        lab.others.put(session, message, overlay)
        assert len(heard(session)) == 4, "nothing waits any more"
        lab.others.close()

    asyncio.run(main())


def test_what_finds_no_room_for_long_is_refused_for_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that hears nothing for half a minute would leave its node."""
    lab = OthersLab()
    session = lab.session()
    monkeypatch.setattr(lab.others.part("mobile"), "has_room", lambda _: False)

    async def main() -> None:
        lab.put(session, 1, "mobile", b"1")
        lab.now = HELD_SECONDS
        lab.others.on_timeout()
        assert heard(session) == []
        assert session.put_bytes > 0
        lab.now = HELD_SECONDS + 1
        lab.others.on_timeout()
        assert [(it.request, cast(Failed, it).code) for it in heard(session)] == [(1, "full")]
        assert (session.put_bytes, session.open) == (0, 0)
        lab.others.close()

    asyncio.run(main())


def test_who_waits_for_room_elsewhere_than_on_links_does_not_spin() -> None:
    asked = 0

    def publish() -> bool:
        nonlocal asked
        asked += 1
        return True

    async def main() -> None:
        pacing = Pacing(lambda: list[Connection](), publish)
        pacing.begin()
        await asyncio.sleep(0.2)
        pacing.close()

    asyncio.run(main())
    assert 1 <= asked <= 10


def test_one_exception_does_not_stop_all_that_is_published_later() -> None:
    asked, reported = 0, list[Any]()

    def publish() -> bool:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise ValueError("a fault")
        return False

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, error: reported.append(error["exception"]))
        pacing = Pacing(lambda: list[Connection](), publish)
        for _ in range(2):
            pacing.begin()
            await asyncio.sleep(0.01)
        gc.collect()
        assert asked == 2
        assert [str(it) for it in reported] == ["a fault"], "nobody was told"
        pacing.begin()
        pacing.close()
        await asyncio.sleep(0.01)
        pacing.begin()
        await asyncio.sleep(0.01)
        assert asked == 2, "it is closed"

    asyncio.run(main())


def test_a_link_that_is_left_behind_is_waited_for_where_nobody_catches_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pace, "PACE_SECONDS", 0.01)

    async def main() -> None:
        link = cast(Connection, SimpleNamespace(crowded=True, behind=False, eased=Event().wait))
        for patient in True, False:
            await room([link], patient=patient)
            assert link.behind is not patient
        crowded = [Pacing(lambda: [link], bool, patient=it).crowded for it in (True, False)]
        assert crowded == [True, False]

    asyncio.run(main())


def test_a_queue_is_looked_through_at_timeouts_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """With thousands in it each publication, and each message, would take milliseconds."""
    part, looked = broker(), 0

    def count(_: object) -> None:
        nonlocal looked
        looked += 1

    monkeypatch.setattr(type(part.node.links[2]), "repair_queue", count)
    published(part, 3)
    part.node.on_message(Beat(2, bytes(ID_BYTES)), 2)
    assert looked == 0
    Broker.on_timeout(part.node)  # but for the tree
    assert looked == 2
