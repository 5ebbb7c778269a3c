"""What the network has of a subscription: its topics, and which numbers of their streams there are.

One connection beside Spark's driver. A question for news waits at the node, so that an idle query
costs four small questions a second for each topic, or 256 for all if they are many, and still hears
of a publication at once.
"""

import asyncio
import json
import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from planaria.core.errors import PlanariaError, UsageError
from planaria.core.topics import has_wildcard
from planaria.network.client.access import Access, shown
from planaria.network.client.lacks import GIVE_UP_SECONDS
from planaria.network.client.looping import Loop
from planaria.network.client.messages import (
    AskExtent,
    AskStatus,
    AskTopics,
    Extent,
    ExtentIs,
    StatusIs,
    TopicsAre,
)
from planaria.network.client.requests import Requests
from planaria.network.client.servers import Servers, addresses_in
from planaria.network.context import Context
from planaria.records.positions import START, Mark
from planaria.records.record import Stream
from planaria.spark.source.fetch import absent
from planaria.spark.source.holes import Holes
from planaria.spark.source.offsets import Vectors, clipped, union
from planaria.spark.source.options import TIME, Where

NEWS_SECONDS = 0.25  # for which a query that has read all waits for more
NEWS_SECONDS_MAX = 10.0  # for which a question for news waits where there are many topics
NEWS_TOPICS = 64  # topics that are asked for news every so often; more as much more rarely
QUESTIONS_MAX = 1024  # under way to one node
TOPICS_SECONDS = 1.0  # between questions for topics that match a pattern
OTHERS_SECONDS = 2.0  # for other nodes to say what they have
OTHERS_MAX = 16  # nodes that are asked beside ours
PAUSE_SECONDS = 0.1  # before a number that may still come is asked for again; doubles up to
PAUSE_SECONDS_MAX = 2.0


log = logging.getLogger("planaria.spark")


class Seen(NamedTuple):
    """The streams of one topic: what is there of each, with what is missing as skipped."""

    marks: dict[Stream, Mark]
    lows: dict[Stream, int]
    sinces: dict[Stream, int]


NOTHING = Seen({}, {}, {})


class Overview:
    """Asks nodes about a subscription; usable from any one thread."""

    def __init__(self, context: Context, patterns: Sequence[str]) -> None:
        self.patterns = patterns
        self.servers = Servers(context.servers)
        self.access = Access(*shown(context, None))
        self.seen: dict[str, Seen] = {}
        self._versions: dict[str, bytes] = {}
        self._topics = {it: None for it in patterns if not has_wildcard(it)}
        self._asked = float("-inf")  # when topics were asked for
        self._asking: dict[str, asyncio.Task[bool]] = {}  # questions for news under way
        self._asked_others: dict[str, float] = {}
        self._left_out: set[str] = set()  # of what patterns match: we may not read them
        self._holes = Holes()
        self._free = asyncio.Semaphore(QUESTIONS_MAX)
        self._loop = Loop()
        try:
            self._requests = self._loop.run(self._open())
        except BaseException:
            self._loop.stop()
            raise

    async def _open(self) -> Requests:
        requests = Requests(self.servers, self.access)
        await requests.channel.open()
        status = await requests.ask(AskStatus, StatusIs)
        self.servers.learn(addresses_in(json.loads(status.status)))
        return requests

    def close(self) -> None:
        """Hang up."""
        try:
            self._loop.run(self._close())
        finally:
            self._loop.stop()

    async def _close(self) -> None:
        for asked in self._asking.values():
            asked.cancel()
        await asyncio.gather(*self._asking.values(), return_exceptions=True)
        await self._requests.channel.close()

    # Questions

    def fresh(self, time: int = 0) -> dict[str, Seen]:
        """All that any node that can be asked has now, by topic; `time` for `Seen.sinces`."""
        return self._loop.run(self._fresh(time))

    def news(self, start: Vectors) -> dict[str, Seen]:
        """What our node has, as soon as it is more than `start`, or after a while."""
        self._holes.passed = start
        return self._loop.run(self._news(start))

    async def _fresh(self, time: int) -> dict[str, Seen]:
        await self._find_topics(whole=True)
        found = await self._fresh_topics([*self._topics], time)
        self.seen.update({topic: seen for topic, seen in found.items() if seen.marks})
        return found

    async def _fresh_topics(self, topics: Sequence[str], time: int) -> dict[str, Seen]:
        """What our node and others have of topics; that of others as far as they answer."""
        here = self.access._replace(patience=0.0)
        rest = [it for it in self.servers if it != self._requests.channel.address][:OTHERS_MAX]
        told: list[dict[str, list[Extent]]] = [{} for _ in rest]
        others = [
            asyncio.create_task(_extents_at(it, here, topics, time, into))
            for it, into in zip(rest, told, strict=True)
        ]
        try:
            asked = [self._extents(AskExtent(0, topic, time=time)) for topic in topics]
            answers = await asyncio.gather(*asked)
            await _as_they_answer(others, told)
        finally:
            for one in others:
                one.cancel()
            await asyncio.gather(*others, return_exceptions=True)
        seen = {topic: seen_of(it) for topic, (it, _) in zip(topics, answers, strict=True)}
        for answer in told:
            for topic, extents in answer.items():
                seen[topic] = both(seen[topic], seen_of(extents))
        return seen

    async def _news(self, start: Vectors) -> dict[str, Seen]:
        await self._find_topics(whole=False)
        seconds = max(NEWS_SECONDS, NEWS_SECONDS * len(self._topics) / NEWS_TOPICS)
        wait = 0 if self._ahead(start) else int(1000 * min(seconds, NEWS_SECONDS_MAX))
        for topic in self._topics:
            if topic not in self._asking:
                self._asking[topic] = asyncio.create_task(self._newer(topic, wait))
        loop = asyncio.get_running_loop()
        until = loop.time() + 2 * NEWS_SECONDS
        while True:
            done = [topic for topic, asked in self._asking.items() if asked.done()]
            news = [self._asking.pop(topic).result() for topic in done]
            left = until - loop.time()
            if any(news) or not self._asking or left <= 0:
                break  # what takes longer goes on, and is there for the next call
            await asyncio.wait(
                self._asking.values(), timeout=left, return_when=asyncio.FIRST_COMPLETED
            )
        await self._look_for_holes()
        return self.seen

    async def _newer(self, topic: str, wait: int) -> bool:
        known = self._versions.get(topic, b"")
        found, version = await self._extents(AskExtent(0, topic, known, wait))
        if version == known:
            return False
        self._versions[topic] = version
        self.seen[topic] = both(self._kept(topic, found), seen_of(found))
        return True

    async def _extents(self, asked: AskExtent) -> tuple[list[Extent], bytes]:
        """What our node has of a topic; of those that a pattern matches, what we may not read is
        left out, as subscriptions leave it out."""
        try:
            async with self._free:
                return await _extents(self._requests, asked)
        except UsageError as error:
            if asked.topic in self.patterns:
                raise
            if asked.topic not in self._left_out:
                self._left_out.add(asked.topic)
                log.warning("%s is left out: %s", asked.topic, error)
            await asyncio.sleep(asked.wait / 1000)  # as its node would have let us wait
            return [], b""

    def _kept(self, topic: str, found: Sequence[Extent]) -> Seen:
        """What is known of streams that this answer does not name, or says less of."""
        before = self.seen.get(topic, NOTHING)
        named = {(it.publisher, it.incarnation): it.low for it in found}
        lows = {stream: named.get(stream, low) for stream, low in before.lows.items()}
        return Seen(before.marks, lows, {})

    def _ahead(self, start: Vectors) -> bool:
        """Is more known than `start` has read?"""
        return any(
            start.get(topic, {}).get(stream, Mark(0)).next < mark.next
            for topic, seen in self.seen.items()
            for stream, mark in self.passable(topic, seen).items()
        )

    async def _find_topics(self, *, whole: bool) -> None:
        """Look for topics that match, now and then; the first time wait for the answer."""
        patterns = [it for it in self.patterns if has_wildcard(it)]
        now = asyncio.get_running_loop().time()
        if patterns and (whole or now - self._asked > TOPICS_SECONDS):
            self._asked = now
            for pattern in patterns:
                found = await self._requests.ask(AskTopics, TopicsAre, pattern)
                self._topics.update(dict.fromkeys(found.topics))

    # What may be read

    def at(self, where: Where) -> Vectors:
        """Positions for the present, or for a time."""
        found = self.fresh(where.time)
        if where.kind != TIME:
            return ends_of(found)
        return {
            topic: {stream: Mark(end) for stream, end in seen.sinces.items() if end > 0}
            for topic, seen in found.items()
        }

    def available(self, found: dict[str, Seen]) -> dict[str, dict[Stream, Mark]]:
        """How far each stream can be read; a number that may still come is not passed."""
        return {topic: self.passable(topic, seen) for topic, seen in found.items()}

    def complete(self, start: Vectors, ends: Vectors | None = None) -> Vectors:
        """How far a reader at `start` can read now, up to `ends` or to what there is.

        Waits for numbers that may still come; those that do not are passed over and logged.
        """
        seen = self.fresh()
        ends = ends_of(seen) if ends is None else ends
        self._holes.passed, pause = start, PAUSE_SECONDS
        while True:
            now = self._loop.loop.time()
            for topic, one in seen.items():
                self._holes.note(topic, clipped({topic: one.marks}, ends).get(topic, {}), now)
            if not self._waits(seen, ends):
                break
            self._loop.run(asyncio.sleep(pause))
            pause = min(2 * pause, PAUSE_SECONDS_MAX)
            seen = {topic: both(seen.get(topic, NOTHING), it) for topic, it in self.fresh().items()}
        self._tell(now)
        self.seen.update(seen)
        return clipped(self.available(seen), ends)

    def _waits(self, seen: dict[str, Seen], ends: Vectors) -> bool:
        """Is there a hole before these ends that is not given up?"""
        found = self.available(seen)
        return any(
            found.get(topic, {}).get(stream, START).next < mark.next
            for topic, marks in clipped({it: one.marks for it, one in seen.items()}, ends).items()
            for stream, mark in marks.items()
        )

    def _tell(self, now: float) -> None:
        lost = self._holes.given_up(now)
        if lost:
            log.warning("%s are skipped: at no node for %.0f s", absent(lost), GIVE_UP_SECONDS)

    def passable(self, topic: str, seen: Seen) -> dict[Stream, Mark]:
        """The marks of a topic, up to the first hole that is not given up."""
        found: dict[Stream, Mark] = {}
        now = self._loop.loop.time()
        for stream, mark in seen.marks.items():
            reach, passed = mark.next, list[tuple[int, int]]()
            for lo, hi in mark.skipped:
                if not self._holes.passable(topic, stream, lo, hi, now):
                    reach = lo
                    break
                passed.append((lo, hi))
            while passed and passed[-1][1] == reach:  # nothing follows: there is no need to pass it
                reach = passed.pop()[0]
            if reach > 0:
                found[stream] = Mark(reach, tuple(passed))
        return found

    async def _look_for_holes(self) -> None:
        """Note what is missing since when; before it is given up, ask the other nodes for it."""
        now = asyncio.get_running_loop().time()
        for topic, seen in list(self.seen.items()):
            self._holes.note(topic, seen.marks, now)
            old = self._holes.oldest(topic, now) > GIVE_UP_SECONDS / 2
            last = self._asked_others.get(topic, float("-inf"))
            if old and now - last > GIVE_UP_SECONDS / 4:
                self._asked_others[topic] = now
                fresh = await self._fresh_topics([topic], 0)
                self.seen[topic] = both(self.seen[topic], fresh[topic])
        self._tell(now)


def seen_of(extents: Iterable[Extent]) -> Seen:
    """What a node says that it has."""
    seen = Seen({}, {}, {})
    for it in extents:
        stream = (it.publisher, it.incarnation)
        if it.next > 0:
            seen.marks[stream] = Mark(it.next, it.holes)
            seen.lows[stream] = it.low
            seen.sinces[stream] = it.since
    return seen


def ends_of(found: dict[str, Seen]) -> dict[str, dict[Stream, Mark]]:
    """The ends of all streams, whatever is missing before them."""
    return {
        topic: {stream: Mark(mark.next) for stream, mark in seen.marks.items()}
        for topic, seen in found.items()
    }


def both(one: Seen, other: Seen) -> Seen:
    """What two nodes have together."""
    marks, lows, sinces = dict(one.marks), dict(one.lows), dict(one.sinces)
    for stream, mark in other.marks.items():
        marks[stream] = union(marks[stream], mark) if stream in marks else mark
        lows[stream] = min(lows.get(stream, other.lows[stream]), other.lows[stream])
        sinces[stream] = max(sinces.get(stream, 0), other.sinces.get(stream, 0))
    return Seen(marks, lows, sinces)


async def _extents(requests: Requests, asked: AskExtent) -> tuple[list[Extent], bytes]:
    """All pages of an answer, and the version of the first."""
    fields = (asked.topic, asked.known, asked.wait, asked.time)
    page = await requests.ask(AskExtent, ExtentIs, *fields, None, asked.join)
    found, version = list(page.extents), page.version
    while page.more and page.extents:
        last = page.extents[-1]
        after = (last.publisher, last.incarnation)
        page = await requests.ask(AskExtent, ExtentIs, *fields, after, asked.join)
        found += page.extents
    return found, version


async def _extents_at(
    address: str, access: Access, topics: Sequence[str], time: int, into: dict[str, list[Extent]]
) -> None:
    """What one particular node has of topics, if it has a copy: over one connection."""
    requests, free = Requests(Servers([address]), access), asyncio.Semaphore(QUESTIONS_MAX)

    async def ask(topic: str) -> None:
        async with free:
            with suppress(PlanariaError):
                question = AskExtent(0, topic, time=time, join=False)
                into[topic], _ = await _extents(requests, question)

    try:
        await requests.channel.open()
        await asyncio.gather(*map(ask, topics))
    except PlanariaError:
        return
    finally:
        await requests.channel.close()


async def _as_they_answer(
    others: Iterable[asyncio.Task[None]], told: Sequence[dict[str, list[Extent]]]
) -> None:
    """Wait for others until all have answered, or none has said anything more for a while."""
    left, before = set(others), -1
    while left and sum(map(len, told)) > before:
        before = sum(map(len, told))
        _, left = await asyncio.wait(left, timeout=OTHERS_SECONDS)
