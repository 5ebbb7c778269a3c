"""What the driver owes to every node, whatever the others do: room, turns, and the truth."""

import asyncio
import time
from functools import partial
from time import monotonic
from typing import cast

import pytest
from msgspec.structs import replace

from driver_lab import (
    INTERVAL,
    Check,
    Later,
    Ping,
    host,
    numbers,
    probe,
    run,
    send,
    until,
    wired,
)
from planaria.core.errors import UsageError
from planaria.core.message import Message
from planaria.core.node import Busy, Effects, LinkDown, Ready, Send
from planaria.network import connection as connections
from planaria.network import dialling
from planaria.network import host as hosts
from planaria.network.connection import CLIENT
from planaria.network.contacts import Contact
from planaria.network.frames import Kind, Reader, frame
from planaria.network.host import Host
from planaria.network.link import BULK_BYTES_WRITTEN, CONTROL_BYTES_MAX, OWED_BYTES_MAX
from planaria.network.pace import room


def test_receiving_never_waits_for_sending() -> None:
    """A passes on to C, which reads nothing, what B sends: B is served to the end all the same."""

    async def flood(a: Host, b: Host, c: Host) -> None:
        stuck = c.links[a.node.id]._transport
        assert stuck is not None
        stuck.pause_reading()
        probe(a).answer = lambda message: [Send(c.node.id, message)]
        for number in range(100):
            await until(lambda: not b.links[a.node.id].crowded)
            send(b, Ping(number, bytes(1 << 16)), to=a)
        await until(lambda: numbers(a) == list(range(100)))
        link = a.links[c.node.id].link
        assert link.bulk.bytes <= link.bulk.bytes_max
        assert a.dropped > 0
        assert [it for it in probe(a).commands if it == Busy(c.node.id)] == [Busy(c.node.id)]
        stuck.resume_reading()
        await until(lambda: Ready(c.node.id) in probe(a).commands)

    run(flood, host, host, host)


def test_a_flood_from_one_socket_leaves_their_turn_to_others() -> None:
    """What came in at once is worked on in parts; nothing more is read before it is done."""

    async def main() -> None:
        one = host()
        link, wire = wired(one)
        others = 0

        def other() -> None:
            nonlocal others
            others += 1

        def slow(_: Message) -> Effects:
            end = monotonic() + connections.TURN_SECONDS / 4
            while monotonic() < end:
                pass
            return ()

        probe(one).answer = slow
        data = b"".join(frame(Kind.CONTROL, one.codec.encode(Check(n))) for n in range(100))
        link.data_received(data)
        assert 0 < len(numbers(one)) < 100
        assert not wire.reading
        done = 0
        while done < 100:
            asyncio.get_running_loop().call_soon(other)
            await asyncio.sleep(0)
            done = len(numbers(one))
        assert numbers(one) == list(range(100))
        assert others >= 10
        assert wire.reading

    asyncio.run(main())


def test_a_flood_keeps_no_timeouts_from_its_node_and_is_not_taken_for_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hosts, "SILENCE_SECONDS", 4 * INTERVAL)
    monkeypatch.setattr(hosts, "BEAT_SECONDS", INTERVAL)

    async def flood(a: Host, b: Host) -> None:
        def slow(_: Message) -> Effects:
            end = monotonic() + 0.002
            while monotonic() < end:
                pass
            return ()

        probe(a).answer = slow
        before = probe(a).timeouts
        send(b, *map(Check, range(500)), to=a)
        await until(lambda: probe(a).timeouts - before >= 4)
        assert len(numbers(a)) < 500, "a second of work, timeouts every tenth of one"
        await until(lambda: len(numbers(a)) == 500)
        assert b.node.id in a.links

    run(flood, host, host)


def test_control_waits_behind_little_bulk_and_has_credit_of_its_own() -> None:
    async def main() -> None:
        one = host()
        link, wire = wired(one)
        to = link.peer
        one._perform([Send(to, Ping(n, bytes(1 << 16))) for n in range(80)], None)
        assert link.link.busy, "the bulk window is full"
        assert sum(map(len, wire.written)) <= BULK_BYTES_WRITTEN + (1 << 17)
        one._perform([Send(to, Check(7))], None)
        await asyncio.sleep(0)
        kinds = [kind for kind, _ in wire.frames()]
        assert kinds.index(Kind.CONTROL) <= 4

        def bulk() -> int:
            return [kind for kind, _ in wire.frames()].count(Kind.BULK)

        await until(lambda: bulk() >= 31)
        await asyncio.sleep(0.01)
        assert bulk() == 63, "as much as fits into the window, and no more"

    asyncio.run(main())


def test_the_first_of_a_turn_leaves_at_once_and_all_that_follow_leave_together() -> None:
    async def main() -> None:
        one = host()
        link, wire = wired(one)
        for number in range(5):
            one._perform([Send(link.peer, Check(number))], None)
        assert [len(list(Reader().feed(data))) for data in wire.written] == [1]
        await asyncio.sleep(0)
        assert [len(list(Reader().feed(data))) for data in wire.written] == [1, 4]

    asyncio.run(main())


def test_acknowledgements_are_counted_for_one_connection_alone() -> None:
    async def reconnect(a: Host, b: Host) -> None:
        send(b, *map(Ping, range(5)), to=a)
        await until(lambda: b.links[a.node.id].link.bulk.acknowledged == 5)
        b.links[a.node.id].close("for the test")
        await until(lambda: not b.links and not a.links)
        await b.join(a.hello.addresses[0])
        link = b.links[a.node.id]
        assert link.link.bulk.acknowledged == 0
        send(b, Ping(5), to=a)
        await until(lambda: link.link.bulk.acknowledged == 1)
        assert link.link.unacknowledged() == ()
        await until(lambda: b.node.id in a.links)
        a.links[b.node.id].say(Kind.ACKNOWLEDGE, (0).to_bytes(8, "big") + (6).to_bytes(8, "big"))
        await until(lambda: "never sent" in link.reason)

    run(reconnect, host, host)


def test_acknowledgements_travel_in_groups_or_with_what_is_sent_anyway() -> None:
    async def main() -> None:
        one = host()
        link, wire = wired(one)

        def acknowledgements() -> int:
            return [kind for kind, _ in wire.frames()].count(Kind.ACKNOWLEDGE)

        small = frame(Kind.BULK, one.codec.encode(Ping(1)))
        for _ in range(50):
            link.data_received(small)
        await asyncio.sleep(0)
        assert acknowledgements() == 0
        one._perform([Send(link.peer, Check(1))], None)
        assert acknowledgements() == 1
        link.data_received(small)
        await asyncio.sleep(3 * connections.OWED_SECONDS)
        assert acknowledgements() == 2, "not for ever"
        for kind, size in ((Kind.BULK, OWED_BYTES_MAX), (Kind.CONTROL, CONTROL_BYTES_MAX // 4)):
            before = acknowledgements()
            link.data_received(frame(kind, one.codec.encode(Ping(1, bytes(size)))))
            await asyncio.sleep(0)
            assert acknowledgements() == before + 1, "a window must not fill meanwhile"

    asyncio.run(main())


def test_who_has_said_something_to_a_node_need_not_beat() -> None:
    async def main() -> None:
        one = host()
        link, wire = wired(one)

        def beats() -> int:
            before = [kind for kind, _ in wire.frames()].count(Kind.BEAT)
            link.beat()
            return [kind for kind, _ in wire.frames()].count(Kind.BEAT) - before

        beats()
        assert (beats(), beats()) == (1, 1)
        one._perform([Send(link.peer, Check(1))], None)
        assert (beats(), beats()) == (0, 1)
        assert link.theirs is not None
        link.theirs = replace(link.theirs, role=CLIENT)
        one._perform([Send(link.peer, Check(1))], None)
        assert (beats(), beats()) == (1, 1), "clients wait less long"

    asyncio.run(main())


def test_a_node_whose_timeouts_take_long_hears_others_in_between() -> None:
    """With a thousand topics on a busy machine it had time for nothing but its own timeouts."""

    async def work(one: Host) -> None:
        loop = asyncio.get_running_loop()
        took: list[tuple[float, float]] = []

        def slowly() -> Effects:
            began = loop.time()
            time.sleep(3 * INTERVAL)
            took.append((began, loop.time()))
            return ()

        one.node.on_timeout = slowly  # type: ignore[method-assign]
        one._tick(loop.time())
        [(began, done)] = took
        assert one._timer is not None
        assert one._timer.when() - done >= 3 * (done - began)

    run(work, host())


def test_a_silent_peer_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts, "SILENCE_SECONDS", 5 * INTERVAL)
    monkeypatch.setattr(hosts, "BEAT_SECONDS", INTERVAL)

    async def fall_silent(a: Host, b: Host) -> None:
        await asyncio.sleep(10 * INTERVAL)
        assert b.links, "who beats is there"
        link, b.links[a.node.id].heard = b.links[a.node.id], 0.0
        b._beat(INTERVAL)
        assert not link.reason, "who comes late has not listened"
        link.heard = asyncio.get_running_loop().time()
        assert a._beating is not None
        a._beating.cancel()
        await until(lambda: LinkDown(a.node.id) in probe(b).commands)
        assert not b.links

    run(fall_silent, host, host)


def test_who_cannot_be_reached_is_reported_with_what_was_meant_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dialling, "DIAL_SECONDS", 0.3)
    monkeypatch.setattr(dialling, "WAITING_BYTES_MAX", 1000)

    async def miss(a: Host) -> None:
        gone = host()
        address = await gone.start("127.0.0.1:0")
        await gone.stop()
        a.contacts.learn(Contact(gone.hello.id, (address,), 1))
        send(a, Check(1), Ping(2, bytes(600)), Ping(3, bytes(600)), Check(4), to=gone)
        assert a.queued == 3
        assert a.dropped == 1, "there is a bound on what waits"
        lost = (Check(1), Ping(2, bytes(600)), Check(4))
        await until(lambda: LinkDown(gone.node.id, lost) in probe(a).commands)
        assert a.queued == 0

    run(miss, host)


def test_more_nodes_than_are_dialled_at_a_time_are_all_reached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dialling, "DIALS_MAX", 1)

    async def reach(a: Host) -> None:
        others = [host() for _ in range(4)]
        try:
            for one in others:
                a.contacts.learn(Contact(one.hello.id, (await one.start("127.0.0.1:0"),), 1))
            for number, one in enumerate(others):
                send(a, Check(number), to=one)
            await until(lambda: [numbers(one) for one in others] == [[0], [1], [2], [3]])
        finally:
            for one in others:
                await one.stop()

    run(reach, host)


def test_messages_of_a_later_version_are_counted_ignored_and_acknowledged() -> None:
    async def speak(old: Host, new: Host) -> None:
        send(new, Check(1), Later(2), Check(3), to=old)
        link = new.links[old.node.id].link
        await until(lambda: numbers(old) == [1, 3])
        await until(lambda: link.unacknowledged() == ())
        assert (old.unknown, old.malformed) == (1, 0)
        old.links[new.node.id].say(cast(Kind, 99), b"a frame of a later version")
        new.links[old.node.id].say(cast(Kind, 99), b"a frame of a later version")
        assert new.links[old.node.id].send(b"\xc1garbage", Check(4), bulk=False)
        await until(lambda: old.malformed == 1)
        assert old.unknown == 1
        assert old.links

    run(speak, partial(host, Ping, Check), partial(host, Ping, Check, Later))


def test_two_wire_versions_work_side_by_side() -> None:
    async def meet(both: Host, old: Host) -> None:
        send(old, Check(1), to=both)
        await until(lambda: numbers(both) == [1])
        new = speaking(2)
        await new.start("127.0.0.1:0")
        try:
            await new.join(both.hello.addresses[0])
            send(new, Check(2), to=both)
            await until(lambda: numbers(both) == [1, 2])
            with pytest.raises(UsageError, match=r"speaks wire .*: upgrade the older"):
                await new.join(old.hello.addresses[0])
            assert old.node.id not in new.links
        finally:
            await new.stop()

    def speaking(*versions: int) -> Host:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(hosts, "VERSIONS", versions)
            made = host()
            start = made.start

        async def start_so(address: str) -> str:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(hosts, "VERSIONS", versions)
                return await start(address)

        made.start = start_so  # type: ignore[method-assign,assignment]
        return made

    run(meet, partial(speaking, 1, 2), partial(speaking, 1))


def test_one_connection_too_many_is_refused_with_a_line_and_leaves_nothing() -> None:
    async def crowd(a: Host, b: Host) -> None:
        c = host()
        await c.start("127.0.0.1:0")
        try:
            with pytest.raises(UsageError, match="1 connections are open: try another node"):
                await c.join(a.hello.addresses[0])
            assert b.node.id in a.links
            send(b, Check(1), to=a)
            await until(lambda: numbers(a) == [1])
            b.links[a.node.id].close("room for another")
            await until(lambda: not a._connections)
            assert await c.join(a.hello.addresses[0]) == a.node.id
        finally:
            await c.stop()

    run(crowd, partial(host, connections_max=1), host)


def test_a_publisher_waits_for_links_that_are_crowded_and_for_slow_ones_not_long() -> None:
    async def main() -> None:
        one = host()
        link, _ = wired(one)
        await asyncio.wait_for(room(one.links.values()), 5)
        one._perform([Send(link.peer, Ping(n, bytes(1 << 16))) for n in range(20)], None)
        waiting = asyncio.ensure_future(room(one.links.values()))
        await until(lambda: not link.link.bulk.waiting)
        assert not waiting.done()
        link.data_received(frame(Kind.ACKNOWLEDGE, bytes(8) + (10).to_bytes(8, "big")))
        await asyncio.wait_for(waiting, 5)
        assert not link.behind
        one._perform([Send(link.peer, Ping(n, bytes(1 << 16))) for n in range(10)], None)
        await until(lambda: not link.link.bulk.waiting)
        await asyncio.wait_for(room(one.links.values()), 5)
        assert link.behind, "it was waited for, in vain"
        again = asyncio.ensure_future(room(one.links.values()))
        await asyncio.sleep(0)
        assert again.done(), "and is not waited for again"
        link.data_received(frame(Kind.ACKNOWLEDGE, bytes(8) + (20).to_bytes(8, "big")))
        assert not link.behind

    asyncio.run(main())
