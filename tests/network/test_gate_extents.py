"""Readers plan by extents: which numbers of which streams a node has, and when that changes."""

import asyncio
from time import time

import pytest

from gate_lab import INTERVAL, TOPIC, Lab, RawClient, numbered, publish, run, until
from planaria.network.client.messages import (
    AskExtent,
    Extent,
    ExtentIs,
    Failed,
    Lack,
    Pieces,
    Position,
    Put,
    Read,
    Stored,
)
from planaria.network.gate import extents, queries
from planaria.protocols.publications.retention import Retention

FOREVER = 10**9  # milliseconds: longer than any test


def test_an_extent_has_the_ends_of_a_stream_and_its_holes() -> None:
    async def ask(lab: Lab) -> None:
        writer, reader = await lab.client(0), await lab.client(0)
        records = [writer.seal(payload) for payload in numbered(6)]
        for at in (0, 1, 3, 5):
            await writer.ask(Put, Stored, TOPIC, records[at].data)
        found = await reader.ask(AskExtent, ExtentIs, TOPIC)
        assert found.extents == [Extent(*writer.stream, 0, 6, 0, ((2, 3), (4, 5)))]
        await writer.ask(Put, Stored, TOPIC, records[2].data)
        later = await reader.ask(AskExtent, ExtentIs, TOPIC)
        assert later.extents == [Extent(*writer.stream, 0, 6, 0, ((4, 5),))]
        assert later.version != found.version

    run(ask, 1, 1)


def test_a_stream_begins_where_retention_left_it_and_since_a_time() -> None:
    async def ask(lab: Lab) -> None:
        writer, reader = await lab.client(0), await lab.client(0)
        now = await aged(writer, 10)
        found = await reader.ask(AskExtent, ExtentIs, TOPIC, time=now - 25)
        assert [it[2:5] for it in map(_fields, found.extents)] == [(6, 10, 8)]

    run(ask, 1, 1, retention={TOPIC: Retention(count=4)})


async def aged(writer: RawClient, count: int) -> int:
    """Publish, ten seconds after each other, up to the present: retention is by seconds."""
    now = int(time())
    for number in range(count):
        record = writer.seal(b"%d" % number, at=now - 10 * (count - number))
        await writer.ask(Put, Stored, TOPIC, record.data, copies=1)
    return now


def _fields(it: Extent) -> tuple[int, bytes, int, int, int]:
    return it.publisher, it.incarnation, it.low, it.next, it.since


def test_a_question_for_news_waits_until_there_is_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "WAIT_MILLISECONDS_MAX", FOREVER)

    async def ask(lab: Lab) -> None:
        writer, reader = await lab.client(0), await lab.client(0)
        await publish(writer, 3)
        first = await reader.ask(AskExtent, ExtentIs, TOPIC, b"", FOREVER)
        assert [it.next for it in first.extents] == [3]
        waiting = reader.say(AskExtent, TOPIC, first.version, FOREVER)
        await asyncio.sleep(3 * INTERVAL)
        assert not reader.answers(waiting)
        await writer.publish(b"3")
        news = await reader.answer(waiting, ExtentIs)
        assert [it.next for it in news.extents] == [4]
        idle = await reader.ask(AskExtent, ExtentIs, TOPIC, news.version, 1)
        assert (idle.extents, idle.version) == ([], news.version)

    run(ask, 1, 1)


def test_a_node_without_the_topic_joins_it_unless_it_is_not_to() -> None:
    async def ask(lab: Lab) -> None:
        writer, reader = await lab.client(0), await lab.client(2)
        history = writer.seal(*numbered(3), at=int(time()) - 900)
        await writer.ask(Put, Stored, TOPIC, history.data, copies=2)
        assert (await reader.ask(AskExtent, ExtentIs, "nobody")).extents == []
        here = await reader.ask(AskExtent, ExtentIs, TOPIC, join=False)
        assert here.extents == []
        assert TOPIC not in lab.nodes[2].peer.topics
        found = await reader.ask(AskExtent, ExtentIs, TOPIC)
        assert [it.next for it in found.extents] == [3]
        assert lab.member(2)
        assert (await reader.ask(AskExtent, Failed, "news/#")).code == "usage"

    run(ask, 3, 2)


def test_many_streams_come_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extents, "EXTENTS_PAGE", 2)

    async def ask(lab: Lab) -> None:
        writers = [await lab.client(0) for _ in range(5)]
        for writer in writers:
            await publish(writer, 2)
        reader, found = await lab.client(0), list[Extent]()
        page = await reader.ask(AskExtent, ExtentIs, TOPIC)
        while True:
            found += page.extents
            if not page.more:
                break
            last = (found[-1].publisher, found[-1].incarnation)
            page = await reader.ask(AskExtent, ExtentIs, TOPIC, after=last)
        names = [(it.publisher, it.incarnation) for it in found]
        assert names == sorted(writer.stream for writer in writers)

    run(ask, 1, 1)


def test_a_range_tells_what_is_expired_of_all_that_was_asked_for() -> None:
    async def read(lab: Lab) -> None:
        writer, reader = await lab.client(0), await lab.client(0)
        await aged(writer, 10)
        await until(lambda: len(lab.store(0)) == 4)
        to = [Position(*writer.stream, 12)]
        request = reader.say(Read, TOPIC, [Position(*writer.stream, 2)], to)
        found = await reader.answer(request, Pieces)
        assert reader.payloads(request) == numbered(6, 10)
        expired, coming = Lack(*writer.stream, 2, 6, True), Lack(*writer.stream, 10, 12, False)
        assert sorted(found.lacks, key=lambda it: it.lo) == [expired, coming]

    run(read, 1, 1, retention={TOPIC: Retention(count=4)})


def test_a_range_has_what_a_condition_and_times_leave_of_it() -> None:
    async def read(lab: Lab) -> None:
        writer, reader = await lab.client(0), await lab.client(0)
        now = int(time())
        for number in range(6):
            stamp = {"timestamp": (now + number) * 1_000_000} if number % 2 else {}
            record = writer.seal(b'{"n": %d}' % number, at=now + number, **stamp)
            await writer.ask(Put, Stored, TOPIC, record.data)
        to = [Position(*writer.stream, 6)]
        request = reader.say(Read, TOPIC, [], to, where="n > 1 AND n <> 3")
        found = await reader.answer(request, Pieces)
        assert reader.payloads(request) == [b'{"n": 2}', b'{"n": 4}', b'{"n": 5}']
        assert found.after == to
        times = ((now + 1) * 1_000_000, (now + 4) * 1_000_000)
        request = reader.say(Read, TOPIC, [], to, times=times)
        assert (await reader.answer(request, Pieces)).after == to
        assert reader.payloads(request) == [b'{"n": %d}' % number for number in (1, 2, 3)]
        assert (await reader.ask(Read, Failed, TOPIC, [], to, where="n >")).code == "usage"

    run(read, 1, 1)
