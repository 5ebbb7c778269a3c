"""The layer between connections and their host: what each rule does to frames, and counts."""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any, cast

import pytest
from msgspec import msgpack

from planaria.core.errors import UsageError
from planaria.network import connection
from planaria.network.chaos.layer import Interposed, Layer
from planaria.network.chaos.rules import RULES, make_rule
from planaria.network.connection import CLIENT, NODE, VERSIONS, Connection, Hello
from planaria.network.frames import Kind, frame
from planaria.network.identity import handle_of
from planaria.network.link import Task

PEER, OTHER = b"p" * 16, b"q" * 16


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames are handled when they are said, however slow the machine is."""
    monkeypatch.setattr(connection, "TURN_SECONDS", 60.0)


class Host:
    """Takes what a connection tells."""

    def __init__(self) -> None:
        self.hello = Hello(VERSIONS, b"h" * 16, "test")
        self.credentials = None
        self.processed: list[bytes] = []
        self.asks: list[bytes] = []
        self.open = 0

    def connected(self, connection: Connection) -> None: ...

    def opened(self, connection: Connection) -> None:
        self.open += 1

    def received(self, connection: Connection, body: bytes, task: Task) -> None:
        self.processed.append(body)
        connection.finish(task)

    def asked(self, connection: Connection, kind: int, body: bytes) -> None:
        self.asks.append(body)

    def ready(self, connection: Connection) -> None: ...

    def closed(self, connection: Connection, reason: str) -> None: ...


class Transport:
    closed = 0

    def get_extra_info(self, name: str) -> None: ...

    def write(self, data: bytes) -> None: ...

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        self.closed += 1


class End:
    """One end of a link, whose other end says what a test says."""

    def __init__(self, role: str = NODE) -> None:
        self.host, self.layer, self.role = Host(), Layer(), role
        self.connection = cast(Interposed, self.layer.connect(self.host, dialled=False))
        self.connection.connection_made(cast(asyncio.Transport, Transport()))

    def hello(self) -> None:
        said = Hello(VERSIONS, PEER, "test", role=self.role)
        self.connection.data_received(frame(Kind.HELLO, msgpack.encode(said)))

    def say(self, *bodies: bytes, kind: Kind = Kind.CONTROL) -> None:
        self.connection.data_received(b"".join(frame(kind, body) for body in bodies))

    def begin(self, name: str, **options: Any) -> int:
        return self.layer.begin(make_rule(name, options, Random(1)))

    @property
    def acknowledged(self) -> int:
        return self.connection.link.processed[0]


def run(test: Callable[[End], Any], role: str = NODE, *, greeted: bool = True) -> None:
    async def main() -> None:
        end = End(role)
        if greeted:
            end.hello()
        found = test(end)
        if found is not None:
            await found
        end.connection.connection_lost(None)

    asyncio.run(asyncio.wait_for(main(), 20))


def bodies(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


def test_without_a_rule_every_frame_passes() -> None:
    def test(end: End) -> None:
        end.say(*bodies(3))
        assert end.host.processed == bodies(3)
        assert end.acknowledged == 3

    run(test)


def test_a_partition_holds_everything_and_what_was_said_comes_late_in_its_order() -> None:
    def test(end: End) -> None:
        number = end.begin("partition", nodes=[handle_of(PEER)])
        heard = end.connection.heard = -1.0
        end.say(*bodies(3))
        end.say(b"", kind=Kind.BEAT)
        end.say(b"where", kind=Kind.WHERE)
        assert end.host.processed == end.host.asks == []
        assert end.connection.heard == heard, "who is cut off is not heard"
        assert end.acknowledged == 0
        assert end.layer.end(number) == 5
        assert end.host.processed == bodies(3)
        assert end.host.asks == [b"where"]
        end.say(b"after")
        assert end.host.processed[-1] == b"after"

    run(test)


def test_a_partition_is_about_the_nodes_that_it_names() -> None:
    def test(end: End) -> None:
        number = end.begin("partition", nodes=[handle_of(OTHER)])
        end.say(*bodies(3))
        assert end.host.processed == bodies(3)
        assert end.layer.end(number) == 0

    run(test)


def test_nobody_gets_in_across_a_partition() -> None:
    def test(end: End) -> None:
        number = end.begin("partition", nodes=[handle_of(PEER)])
        end.hello()
        end.say(b"early")
        assert (end.host.open, end.host.processed) == (0, [])
        end.layer.end(number)
        assert (end.host.open, end.host.processed) == (1, [b"early"])

    run(test, greeted=False)


def test_what_two_partitions_hold_waits_for_the_end_of_both() -> None:
    def test(end: End) -> None:
        one, two = (end.begin("partition", nodes=[handle_of(PEER)]) for _ in range(2))
        end.say(*bodies(2))
        end.layer.end(one)
        assert end.host.processed == []
        end.layer.end(two)
        assert end.host.processed == bodies(2)

    run(test)


def test_a_busy_node_takes_no_message_and_is_heard_all_the_same() -> None:
    def test(end: End) -> None:
        number = end.begin("busy")
        end.connection.heard = -1.0
        end.say(*bodies(2))
        end.say(b"where", kind=Kind.WHERE)
        assert end.host.processed == []
        assert end.host.asks == [b"where"]
        assert end.acknowledged == 0
        assert end.connection.heard > 0
        assert end.layer.end(number) == 2
        assert end.host.processed == bodies(2)

    run(test)


def test_a_lost_message_is_acknowledged_and_not_processed() -> None:
    def test(end: End) -> None:
        number = end.begin("loss", rate=0.5)
        end.say(*bodies(100))
        assert 20 < len(end.host.processed) < 80
        assert end.acknowledged == 100
        assert end.layer.end(number) == 100 - len(end.host.processed)

    run(test)


def test_a_duplicate_is_processed_twice_and_acknowledged_once() -> None:
    async def test(end: End) -> None:
        number = end.begin("duplicate", rate=1.0, seconds=0.01)
        end.say(*bodies(5))
        assert end.host.processed == bodies(5)
        while len(end.host.processed) < 10:
            await asyncio.sleep(0.005)
        assert sorted(end.host.processed) == sorted(bodies(5) * 2)
        assert end.acknowledged == 5
        assert end.layer.end(number) == 5

    run(test)


def test_slow_frames_keep_their_order_also_when_the_rule_ends() -> None:
    async def test(end: End) -> None:
        number = end.begin("slow", seconds=0.05)
        end.say(*bodies(4))
        assert end.host.processed == []
        assert end.layer.end(number) == 4
        end.say(b"after")
        while len(end.host.processed) < 5:
            await asyncio.sleep(0.005)
        assert end.host.processed == [*bodies(4), b"after"]
        assert end.acknowledged == 5

    run(test)


def test_messages_that_are_held_back_are_overtaken_and_acknowledged_in_order() -> None:
    async def test(end: End) -> None:
        number = end.begin("reorder", rate=0.5, seconds=0.2)
        end.say(*bodies(20))
        first = list(end.host.processed)
        assert 0 < len(first) < 20
        assert end.acknowledged == next(at for at, it in enumerate(bodies(20)) if it not in first)
        while len(end.host.processed) < 20:
            await asyncio.sleep(0.01)
        assert end.host.processed != sorted(end.host.processed, key=int)
        assert end.acknowledged == 20
        assert end.layer.end(number) == 20 - len(first)

    run(test)


def test_scrambled_messages_are_lost_doubled_or_other_bytes() -> None:
    async def test(end: End) -> None:
        number = end.begin("scramble", rate=1.0)
        said = [b"message %d" % number for number in range(100)]
        end.say(*said)
        await asyncio.sleep(0.01)
        seen = end.host.processed
        assert len({*said} - {*seen}) > 20
        assert any(it not in said for it in seen)
        assert any(seen.count(it) == 2 for it in said)
        assert end.acknowledged == 100
        assert end.layer.end(number) > 50

    run(test)


@pytest.mark.parametrize("name", RULES)
def test_no_rule_touches_what_clients_say(name: str) -> None:
    def test(end: End) -> None:
        number = end.begin(name, rate=1.0, seconds=1.0)
        end.say(*bodies(5))
        assert end.host.processed == bodies(5)
        assert end.layer.end(number) == 0

    run(test, CLIENT)


def test_a_connection_closes_its_transport_once() -> None:
    """asyncio cannot abort a TLS transport that was closed twice: hosts do when they stop."""

    def test(end: End) -> None:
        transport = Transport()
        end.connection._transport = cast(asyncio.Transport, transport)
        end.connection.close("one")
        end.connection.close("two")
        assert transport.closed == 1
        assert end.connection.reason == "one"

    run(test)


def test_messages_are_remembered_to_be_replayed() -> None:
    def test(end: End) -> None:
        end.say(*bodies(3))
        end.say(b"where", kind=Kind.WHERE)
        assert list(end.layer.past) == [(handle_of(PEER), body) for body in bodies(3)]

    run(test)


def test_a_rule_that_is_none_is_told_in_one_line() -> None:
    with pytest.raises(UsageError, match=r"'slwo'.*slow"):
        make_rule("slwo", {}, Random(1))
    with pytest.raises(UsageError, match="loss: could not convert"):
        make_rule("loss", {"rate": "much"}, Random(1))
