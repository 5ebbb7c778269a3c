"""Ranges of topics from whichever node has them: many questions under way, answers in order.

Every number that was asked for is accounted for: it came, its publisher's topic no longer keeps it,
or the read fails. A node that dies in the middle is replaced, and what it had not answered is asked
of the next one. So is all that a node answers that lies: where there are keys each record is its
publisher's, by its signature.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import aclosing
from typing import Any, NamedTuple

from planaria.core.errors import PlanariaError
from planaria.network.client import conditions
from planaria.network.client.access import PATIENCE_SECONDS, Access, shown
from planaria.network.client.distrust import Distrust
from planaria.network.client.lacks import read_at
from planaria.network.client.messages import LACKS_MAX, Piece, Pieces, Position, Read
from planaria.network.client.requests import Requests
from planaria.network.client.servers import Servers
from planaria.network.client.verifying import Unsigned
from planaria.network.context import Context
from planaria.records.batches import Slice
from planaria.records.positions import Intervals
from planaria.records.record import MalformedRecord, Stream, decode_unnamed
from planaria.spark.source.offsets import Range

AHEAD = 3  # questions under way: their answers fill the window of a link
AHEAD_MAX = 64  # the same while their answers are small: of many topics with little in each
STREAMS_AT_ONCE = 1024  # in one question: the frame has room for them
ANSWER_BYTES = 640 << 10  # that a question aims at; a node answers with 768 KiB at most
ROWS_FIRST, ROWS_MAX = 1024, 8192  # in one question: the first, before sizes are known
ABSENT_SECONDS = 60.0  # for which a number may be at no node before the read fails
NAMED_MAX = 8  # ranges in a line
PAUSE_SECONDS = 0.25  # between two searches for it


class DataLoss(PlanariaError):
    """Numbers that were asked for are no longer kept."""


class Misfit(MalformedRecord):
    """An answer that does not fit its question."""


class Part(NamedTuple):
    """What one question brought: slices of one topic, and the ranges that are expired."""

    topic: str
    slices: list[Slice]
    expired: list[Range]


class Condition(NamedTuple):
    """What of a range the node is to send."""

    where: str | None = None
    times: tuple[int, int] | None = None

    @property
    def any(self) -> bool:
        """May something be left out?"""
        return self.where is not None or self.times is not None


class Question:
    """Some ranges of one topic, asked together; each stream at most once."""

    __slots__ = ("answer", "ranges")

    def __init__(self, ranges: Sequence[Range], answer: asyncio.Future[Any]) -> None:
        self.ranges, self.answer = ranges, answer

    @property
    def size(self) -> int:
        """How many numbers they have."""
        return sum(it.size for it in self.ranges)


class Fetcher:
    """Reads ranges over one channel.

    Where records are verified they come whole, and what satisfies the condition is selected here.
    """

    def __init__(self, servers: Servers, access: Access, condition: Condition) -> None:
        self.servers, self.access, self.condition = servers, access, condition
        self.requests = Requests(servers, access)
        self._verifier, self._distrust = access.verifier(), Distrust(self.requests.channel)
        self._proven = ("", b"")  # the record that was verified last
        self._last: dict[tuple[str, Stream], tuple[int, int]] = {}  # end and size of a record
        self._selection = None
        if self._verifier.verifies and condition.where is not None:
            self._selection = conditions.Condition(condition.where)
        self._row_bytes = ANSWER_BYTES / ROWS_FIRST

    async def parts(self, ranges: Sequence[Range]) -> AsyncGenerator[Part, None]:
        """All of these ranges, in order; raises PlanariaError if some cannot be read."""
        await self.requests.channel.open()
        try:
            left, asked = deque(ranges), deque[Question]()
            while left or asked:
                while left and self._has_room(asked):
                    asked.append(self._ask(self._cut(left)))
                try:
                    part, rest = await self._answered(asked[0])
                except MalformedRecord as error:
                    asked = self._distrusted(error, asked)
                    continue
                asked.popleft()
                for more in reversed(rest):
                    asked.appendleft(self._ask(more))
                yield part
        finally:
            await self.requests.channel.close()

    def _has_room(self, asked: Sequence[Question]) -> bool:
        """May one question more be under way?"""
        expected = self._row_bytes * sum(it.size for it in asked)
        return len(asked) < AHEAD or (expected < AHEAD * ANSWER_BYTES and len(asked) < AHEAD_MAX)

    def _ask(self, ranges: Sequence[Range]) -> Question:
        return Question(ranges, self.requests.begin(Read, *self._fields(ranges)))

    def _fields(self, ranges: Sequence[Range]) -> tuple[object, ...]:
        """The question for these ranges."""
        after = [Position(*it.stream, it.lo) for it in ranges]
        to = [Position(*it.stream, it.hi) for it in ranges]
        wanted = (*self.condition, self._selection is not None)
        return ranges[0].topic, after, to, ROWS_MAX, 0, *wanted

    def _distrusted(self, error: MalformedRecord, asked: Sequence[Question]) -> deque[Question]:
        """Ask all of it of another node, also what this one has answered already.

        Raises Untrusted, or what is wrong, if no node does better for as long as patience lasts.
        """
        first = asked[0].ranges[0]
        failure = self._distrust.leave(error, (first.topic, first.stream, first.lo))
        if failure is not None:
            raise failure if isinstance(error, Unsigned) else error
        for question in asked:
            question.answer.cancel()
        return deque(self._ask(question.ranges) for question in asked)

    def _cut(self, left: deque[Range]) -> list[Range]:
        """The next ranges that one answer may hold: of one topic, each stream once."""
        room = max(1, min(ROWS_MAX, int(ANSWER_BYTES / self._row_bytes)))
        chosen: list[Range] = []
        streams: set[Stream] = set()
        while left and room > 0 and len(chosen) < STREAMS_AT_ONCE:
            it = left[0]
            if it.stream in streams or (chosen and it.topic != chosen[0].topic):
                break
            left.popleft()
            if it.size > room:
                end = self._between_records(it, room)
                left.appendleft(it._replace(lo=end))
                it = it._replace(hi=end)
            chosen.append(it)
            streams.add(it.stream)
            room -= it.size
        return chosen

    def _between_records(self, it: Range, room: int) -> int:
        """Where to cut a range after `room` numbers at most: a record that is cut comes twice.

        Known only if they are as large as the last that came, as those of much that is published.
        """
        end = it.lo + room
        last_end, size = self._last.get((it.topic, it.stream), (end, 1))
        between = end - (end - last_end) % size
        return between if between > it.lo else end

    async def _answered(self, question: Question) -> tuple[Part, list[list[Range]]]:
        """What came for a question, and the questions that are still to be asked."""
        until = asyncio.get_running_loop().time() + ABSENT_SECONDS
        found = await question.answer
        while True:
            if not isinstance(found, Pieces):
                raise PlanariaError(f"a node answers a range with {type(found).__name__}")
            if len(found.lacks) >= LACKS_MAX and question.size > 1:  # there may be more of them
                return Part(found.topic, [], []), halves(question.ranges)
            part, rest = self._judged(question.ranges, found)
            if part.slices or part.expired or len(rest) < len(question.ranges):
                return part, [rest] if rest else []
            if asyncio.get_running_loop().time() > until:
                lacks = f"{absent(rest)} are at no node for {ABSENT_SECONDS:.0f} s"
                raise PlanariaError(f"{lacks}: is a node down that holds them?")
            found = await self._elsewhere(question) or found

    async def _elsewhere(self, question: Question) -> Pieces | None:
        """The first good answer of another node that has something, then that of ours again."""
        asked = self._fields(question.ranges)
        for address in list(self.servers):
            if address != self.requests.channel.address:
                found = await read_at(address, self.access, *asked)
                if found is not None and found.after and self._fits(question.ranges, found):
                    return found
        await asyncio.sleep(PAUSE_SECONDS)
        again: Pieces = await self.requests.ask(Read, Pieces, *asked)
        return again

    def _fits(self, ranges: Sequence[Range], found: Pieces) -> bool:
        try:
            self._judged(ranges, found)
        except MalformedRecord:
            return False
        return True

    def _judged(self, ranges: Sequence[Range], found: Pieces) -> tuple[Part, list[Range]]:
        """Account for every number that an answer has passed; raises MalformedRecord if it lies."""
        topic = ranges[0].topic
        if found.topic != topic:
            raise Misfit(f"{self._node} sends of {found.topic!r} what was asked for of {topic!r}")
        reached = {(it.publisher, it.incarnation): it.next for it in found.after}
        came = {it.stream: Intervals() for it in ranges}
        slices = [self._slice(topic, piece) for piece in found.pieces]
        for one in slices:
            if one.record.stream not in came or came[one.record.stream].common(one.lo, one.hi):
                raise Misfit(f"{self._node} sends what was not asked for: {one.record}")
            came[one.record.stream].add(one.lo, one.hi)
            self._last[topic, one.record.stream] = (one.record.end, one.record.count)
        self._measure(found.pieces, slices)
        gone: dict[Stream, Intervals] = {}
        for lack in found.lacks:
            if lack.expired:
                stream = (lack.publisher, lack.incarnation)
                gone.setdefault(stream, Intervals()).add(lack.lo, lack.hi)
        rest, expired = list[Range](), list[Range]()
        for it in ranges:
            end = min(it.hi, max(it.lo, reached.get(it.stream, it.lo)))
            if end < it.hi:
                rest.append(it._replace(lo=end))
            lost = gone[it.stream].common(it.lo, end) if it.stream in gone else []
            expired += [it._replace(lo=lo, hi=hi) for lo, hi in lost]
            self._check(it._replace(hi=end), came[it.stream], lost)
        if self._selection is not None:
            slices = self._selection.cut(topic, slices)
        return Part(topic, slices, expired), rest

    def _slice(self, topic: str, piece: Piece) -> Slice:
        record = decode_unnamed(piece.record)
        if self._proven != (topic, piece.record):  # it goes on from the answer before
            self._verifier.check(topic, record)
            self._proven = (topic, piece.record)
        return Slice(record, max(piece.lo, record.first), min(piece.hi, record.end))

    def _check(self, it: Range, came: Intervals, lost: Sequence[tuple[int, int]]) -> None:
        """Was all of a range given or told to be expired, and nothing beyond it given?"""
        for lo, hi in lost:
            came.add(lo, hi)
        outside = came.end > it.hi or any(lo < it.lo for lo, _ in came)
        if outside or (not self.condition.any and came.missing(it.lo, it.hi)):
            raise Misfit(f"{self._node} sends {list(came)} of what was asked for: {it}")

    def _measure(self, pieces: Sequence[Piece], slices: Sequence[Slice]) -> None:
        """Learn how large rows are, to ask for what one answer holds."""
        rows = sum(one.record.count for one in slices)  # records come whole, whatever is taken
        if rows:
            size = sum(len(piece.record) for piece in pieces) / rows
            self._row_bytes = max(1.0, (self._row_bytes + size) / 2)

    @property
    def _node(self) -> str:
        return self.requests.channel.address


def parts_of(
    context: Context, ranges: Sequence[Range], condition: Condition, *, verify: bool = True
) -> Generator[Part, None, None]:
    """The same for code that waits: the event loop runs while the next part is asked for.

    While nobody asks, answers fill the link's window and the node waits; a node that takes that
    for silence is found again.
    """
    access = Access(*shown(context, None), PATIENCE_SECONDS, verify)
    loop = asyncio.new_event_loop()
    parts = _parts(Fetcher(Servers(context.servers), access, condition), ranges)
    try:
        while (part := loop.run_until_complete(anext(parts, None))) is not None:
            yield part
    finally:
        loop.run_until_complete(parts.aclose())
        loop.close()


async def _parts(fetcher: Fetcher, ranges: Sequence[Range]) -> AsyncGenerator[Part, None]:
    async with aclosing(fetcher.parts(ranges)) as parts:
        async for part in parts:
            yield part


def halves(ranges: Sequence[Range]) -> list[list[Range]]:
    """The same numbers in two parts."""
    first, room, rest = list[Range](), sum(it.size for it in ranges) // 2, list[Range]()
    for it in ranges:
        lo = min(it.hi, it.lo + room)
        first += [it._replace(hi=lo)] if it.lo < lo else []
        rest += [it._replace(lo=lo)] if lo < it.hi else []
        room -= lo - it.lo
    return [first, rest]


def absent(ranges: Sequence[Range]) -> str:
    """These numbers, in one line."""
    named = [
        f"{it.lo} to {it.hi - 1} of {it.stream[0]}/{it.stream[1].hex()} in {it.topic}"
        for it in ranges[:NAMED_MAX]
    ]
    more = f" and {len(ranges) - NAMED_MAX} other ranges" if len(ranges) > NAMED_MAX else ""
    return f"numbers {', '.join(named)}{more}"
