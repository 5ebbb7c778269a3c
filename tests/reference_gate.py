"""The server side of the client protocol, as stupid as can be: one list in memory, real sockets.

Several of these on one `Memory` are a network whose nodes all know the same at once, unless one is
told to lag. Each can be told to misbehave as real ones do when they die.
"""

import asyncio
import json
import secrets
from collections.abc import Callable
from typing import Any

import msgspec

from planaria.core.codec import Codec
from planaria.core.message import Message
from planaria.core.topics import matches
from planaria.filters.filters import matches as satisfies
from planaria.filters.sql import parse
from planaria.network.client import messages as m
from planaria.network.connection import VERSIONS, Connection, Hello
from planaria.network.contacts import format_address
from planaria.network.frames import Kind
from planaria.network.identity import handle_of
from planaria.network.link import Task
from planaria.network.tls import Credentials
from planaria.records.record import Record, decode, seal

CODEC = Codec(m.MESSAGES)
Stream = tuple[int, bytes]


class Memory:
    """All that was ever stored: (topic, stream, number, record), in the order of coming."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, Stream, int, Record]] = []
        self.gates: list[ReferenceGate] = []

    def store(self, topic: str, record: Record) -> None:
        known = {(it[0], it[1], it[2]) for it in self.rows[-100_000:]}
        for number in range(record.first, record.end):
            if (topic, record.stream, number) not in known:
                self.rows.append((topic, record.stream, number, record))
        for gate in self.gates:
            gate.serve_soon()

    def payloads(self, topic: str) -> list[bytes]:
        return [
            record.publications(number, number + 1)[0].payload
            for where, _, number, record in self.rows
            if where == topic
        ]


class ReferenceTail:
    """One tail: how far it is in each stream."""

    def __init__(self, connection: Connection, ask: m.Tail) -> None:
        self.connection, self.ask = connection, ask
        self.at = {
            (topic, (one.publisher, one.incarnation)): (one.next, set(_numbers(one.skipped)))
            for topic, positions in ask.vectors.items()
            for one in positions
        }
        self.placed = set(self.at)  # the others are read from the floor on
        self.lacked: set[tuple[str, Stream, int]] = set()


class ReferenceGate:
    """One server; a handler of connections."""

    def __init__(self, memory: Memory, credentials: Credentials | None = None) -> None:
        self.memory, self.credentials = memory, credentials
        id = credentials.identity.id if credentials else secrets.token_bytes(16)
        self.hello = Hello(VERSIONS, id, "planaria")
        self.stream: Stream = (handle_of(id), secrets.token_bytes(12))
        self.next: dict[str, int] = {}
        self.tokens: dict[bytes, tuple[Stream, int]] = {}  # each node remembers its own
        self.address = ""
        self.asked_for: list[Message] = []
        # How to misbehave
        self.frozen = False  # neither beats nor answers
        self.twice = False  # answers everything twice
        self.refusals: list[tuple[str, str]] = []  # answers to the next puts: (code, reason)
        self.refuse_all: tuple[str, str] | None = None
        self.die_after_puts: int | None = None  # stores that many more, then dies unanswered
        self.drop_after_pieces: int | None = None  # frames, then hangs up
        self.lacks: Callable[[str, Stream, int], bool] = lambda topic, stream, number: False
        self.expired = 0  # below this number every stream is gone here
        self.contacts: list[str] = []
        self.tails: dict[tuple[Connection, int], ReferenceTail] = {}
        self.vectors: dict[tuple[Connection, int], list[dict[str, list[m.Position]]]] = {}
        self.connections: set[Connection] = set()
        self._server: asyncio.Server | None = None
        self._port = 0  # any; the same when it is started again
        self._beats: asyncio.Task[None] | None = None
        self._serving = False
        memory.gates.append(self)

    async def start(self) -> str:
        loop = asyncio.get_running_loop()
        context = self.credentials.context(server=True) if self.credentials else None
        self._server = await loop.create_server(
            lambda: Connection(self, dialled=False), "127.0.0.1", self._port, ssl=context
        )
        self._port = self._server.sockets[0].getsockname()[1]
        self.address = format_address(*self._server.sockets[0].getsockname()[:2])
        self._beats = asyncio.create_task(self._beat())
        return self.address

    def die(self) -> None:
        """As kill -9 does: nothing more is said, all sockets are gone."""
        if self._server is not None:
            self._server.close()
        if self._beats is not None:
            self._beats.cancel()
        self.tails.clear()
        for connection in list(self.connections):
            connection.abort()

    async def stop(self) -> None:
        self.die()
        while self.connections:
            await asyncio.sleep(0.01)

    def hang_up(self) -> None:
        for connection in list(self.connections):
            connection.abort()

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(0.3)
            for connection in list(self.connections):
                if not self.frozen:
                    connection.say(Kind.BEAT, b"")
            self.serve_soon()

    # What connections tell

    def connected(self, connection: Connection) -> None:
        self.connections.add(connection)

    def opened(self, connection: Connection) -> None:
        pass

    def asked(self, connection: Connection, kind: int, body: bytes) -> None:
        pass

    def ready(self, connection: Connection) -> None:
        self.serve_soon()

    def closed(self, connection: Connection, reason: str) -> None:
        self.connections.discard(connection)
        self.tails = {name: it for name, it in self.tails.items() if name[0] is not connection}

    def received(self, connection: Connection, body: bytes, task: Task) -> None:
        if self.frozen:
            return
        message = CODEC.decode(body)
        self.asked_for.append(message)
        answer = self._answer(connection, message)
        connection.finish(task)
        for _ in range(2 if self.twice else 1):
            if answer is not None:
                connection.send(CODEC.encode(answer), answer, bulk=False)
        self.serve_soon()

    # Answers

    def _answer(self, connection: Connection, message: Message) -> Message | None:
        assert isinstance(message, m.ClientMessage)
        number = message.request
        refusal = self.refuse_all
        if isinstance(message, m.Put | m.PutNew) and self.refusals:
            refusal = self.refusals.pop(0)
        if refusal is not None:
            return m.Failed(number, *refusal)
        if isinstance(message, m.Put | m.PutNew):
            return self._put(message)
        if isinstance(message, m.Resolve):
            return self._resolve(connection, message)
        if isinstance(message, m.Vectors):
            self.vectors.setdefault((connection, number), []).append(message.vectors)
            return None
        if isinstance(message, m.Tail):
            parts = [*self.vectors.pop((connection, number), []), message.vectors]
            topics = dict.fromkeys(topic for part in parts for topic in part)
            whole = {
                topic: [it for part in parts for it in part.get(topic, [])] for topic in topics
            }
            message = msgspec.structs.replace(message, vectors=whole)
            self.tails[connection, number] = ReferenceTail(connection, message)
            return m.Tailing(number, self.topics(message.pattern))
        if isinstance(message, m.Stop):
            self.tails.pop((connection, number), None)
            return None
        if isinstance(message, m.Read):
            return self._read(message)
        if isinstance(message, m.AskTopics):
            return m.TopicsAre(number, self.topics(message.pattern))
        if isinstance(message, m.AskVector):
            return m.VectorIs(number, m.to_wire(self._vector(message.topic)))
        if isinstance(message, m.AskStatus):
            contacts = [{"addresses": [address]} for address in self.contacts]
            return m.StatusIs(number, json.dumps({"contacts": contacts}).encode())
        return m.Failed(number, "usage", f"{type(message).__name__} is not known here")

    def _put(self, message: m.Put | m.PutNew) -> Message | None:
        topic = message.topic
        if isinstance(message, m.Put):
            record = decode(message.record)
            stream, first, count = record.stream, record.first, record.count
            self.memory.store(topic, record)
        elif message.token in self.tokens:
            stream, first = self.tokens[message.token]
            count = len(message.drafts)
        else:
            stream, first, count = self.stream, self.next.get(topic, 0), len(message.drafts)
            self.next[topic] = first + count
            self.memory.store(topic, seal(stream, first, message.drafts, time=1_700_000_000))
            self.tokens[message.token] = (stream, first)
        if self.die_after_puts is not None:
            self.die_after_puts -= 1
            if self.die_after_puts <= 0:
                self.die()
                return None
        return m.Stored(message.request, min(2, message.copies), 3, *stream, first, count)

    def _resolve(self, connection: Connection, message: m.Resolve) -> Message:
        vectors: dict[str, list[m.Position]] = {}
        last: dict[str, m.Piece] = {}
        for topic in self.topics(message.pattern):
            if message.since in ("now", "last"):
                vectors[topic] = m.to_wire(self._vector(topic))
            if message.since == "last":
                *_, number, record = [row for row in self.memory.rows if row[0] == topic][-1]
                last[topic] = m.Piece(record.data, number, number + 1)
        floor = message.time if message.since == "time" else 0
        for part in m.in_parts(vectors):
            answer = m.Resolved(message.request, part, floor, {}, True)
            connection.send(CODEC.encode(answer), answer, bulk=False)
        return m.Resolved(message.request, {}, floor, last)

    def _read(self, message: m.Read) -> Message:
        ask = m.Tail(0, message.topic, {message.topic: message.after}, 0, message.where)
        tail = ReferenceTail(None, ask)  # type: ignore[arg-type]
        to = None
        if message.to is not None:
            to = {(it.publisher, it.incarnation): it.next for it in message.to}
        pieces = list(self._news(tail, message.topic, min(700, message.limit), to))
        lacks = self._lacking(tail, message.topic, to)
        return m.Pieces(
            message.request, message.topic, pieces, self._after(tail, message.topic), lacks
        )

    def topics(self, pattern: str) -> list[str]:
        return sorted({row[0] for row in self.memory.rows if matches(pattern, row[0])})

    def _vector(self, topic: str) -> dict[Stream, Any]:
        from planaria.records.positions import Mark

        ends: dict[Stream, int] = {}
        for where, stream, number, _ in self._held(topic):
            if where == topic:
                ends[stream] = max(ends.get(stream, 0), number + 1)
        return {stream: Mark(end) for stream, end in ends.items()}

    # Tails

    def serve_soon(self) -> None:
        if not self._serving:
            self._serving = True
            asyncio.get_running_loop().call_soon(self._serve)

    def _serve(self) -> None:
        self._serving = False
        for tail in list(self.tails.values()):
            for topic in self.topics(tail.ask.pattern):
                while not self.frozen and self._serve_topic(tail, topic):
                    pass

    def _serve_topic(self, tail: ReferenceTail, topic: str) -> bool:
        before = dict(tail.at)
        pieces = list(self._news(tail, topic, 64, None))
        lacks = self._lacking(tail, topic, None)
        if not pieces and not lacks and tail.at == before:
            return False
        after = self._after(tail, topic)
        answer = m.Pieces(tail.ask.request, topic, pieces, after, lacks)
        if not tail.connection.send(CODEC.encode(answer), answer, bulk=True):
            tail.at = before
            return False
        if self.twice:
            tail.connection.send(CODEC.encode(answer), answer, bulk=True)
        if self.drop_after_pieces is not None:
            self.drop_after_pieces -= 1
            if self.drop_after_pieces <= 0:
                self.drop_after_pieces = None
                self.hang_up()
                return False
        return bool(pieces)

    def _held(self, topic: str) -> list[tuple[str, Stream, int, Record]]:
        rows = [row for row in self.memory.rows if row[0] == topic and row[2] >= self.expired]
        return [row for row in rows if not self.lacks(*row[:3])]

    def _news(
        self, tail: ReferenceTail, topic: str, limit: int, to: dict[Stream, int] | None
    ) -> list[m.Piece]:
        """What follows the cursor: number by number, without passing one that is missing."""
        held = {(stream, number): record for _, stream, number, record in self._held(topic)}
        pieces: list[m.Piece] = []
        for stream in dict.fromkeys(stream for stream, _ in held):
            place = (topic, stream)
            following, skipped = tail.at.get(place, (0, set()))
            if place not in tail.placed:
                old = [n for s, n in held if s == stream and held[s, n].time < tail.ask.floor]
                following = max([following, *(number + 1 for number in old)])
            following = max(following, self.expired)
            late = sorted(number for number in skipped if (stream, number) in held)
            end = following
            while (stream, end) in held and (to is None or end < to.get(stream, 0)):
                end += 1
            room = limit - sum(piece.hi - piece.lo for piece in pieces)
            wanted = _fitting([*late, *range(following, end)][: max(0, room)], stream, held)
            for number in wanted:
                record = held[stream, number]
                if self._passes(tail.ask, topic, record, number):
                    pieces.append(m.Piece(record.data, number, number + 1, number < following))
                    _join(pieces)
            done = [number for number in wanted if number >= following]
            following = max([following, *(number + 1 for number in done)])
            tail.at[place] = (following, skipped - set(wanted))
        return pieces

    def _passes(self, ask: m.Tail, topic: str, record: Record, number: int) -> bool:
        one, mine = record.publications(number, number + 1)[0], (record.time, record.stream, number)
        if ask.compacted and one.key is not None:
            held = [(it.time, of, at, it) for _, of, at, it in self._held(topic)]
            if any(
                it[:3] > mine and it[3].publications(it[2], it[2] + 1)[0].key == one.key
                for it in held
            ):
                return False
        return ask.where is None or any(
            satisfies(it, json.loads(one.payload)) for it in parse(ask.where)
        )

    def _lacking(
        self, tail: ReferenceTail, topic: str, to: dict[Stream, int] | None
    ) -> tuple[m.Lack, ...]:
        """Streams that stand before a hole, each told once."""
        lacks = []
        for _, stream, number, _ in [row for row in self.memory.rows if row[0] == topic]:
            at = tail.at.get((topic, stream), (0, set()))[0]
            hole = self.lacks(topic, stream, at) and number > at
            said_before = (topic, stream, at) in tail.lacked
            if hole and not said_before and (to is None or at < to[stream]):
                tail.lacked.add((topic, stream, at))
                missing = at
                while self.lacks(topic, stream, missing):
                    missing += 1
                lacks.append(m.Lack(*stream, at, missing, False))
        return tuple(lacks)

    def _after(self, tail: ReferenceTail, topic: str) -> list[m.Position]:
        return [
            m.Position(*stream, following, tuple((n, n + 1) for n in sorted(skipped)))
            for (where, stream), (following, skipped) in tail.at.items()
            if where == topic
        ]


def _fitting(
    wanted: list[int], stream: Stream, held: dict[tuple[Stream, int], Record]
) -> list[int]:
    """As many of these as fit into one frame."""
    size, seen = 0, set[bytes]()
    for at, number in enumerate(wanted):
        record = held[stream, number]
        size += len(record.data) * (record.key not in seen)
        seen.add(record.key)
        if at and size > 500_000:
            return wanted[:at]
    return wanted


def _join(pieces: list[m.Piece]) -> None:
    """Make one of the last two if they follow each other in one record."""
    if len(pieces) > 1:
        one, two = pieces[-2:]
        if one.record == two.record and one.hi == two.lo and one.late == two.late:
            pieces[-2:] = [m.Piece(one.record, one.lo, two.hi, one.late)]


def _numbers(intervals: tuple[tuple[int, int], ...]) -> list[int]:
    return [number for lo, hi in intervals for number in range(lo, hi)]
