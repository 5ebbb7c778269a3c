"""Batches that are published whole and once: staged first, then settled by one manifest.

Whoever writes part of a batch stages it (`Stager`): members hold it, and nobody sees it. Whoever
commits the batch (`commit`) has members hold the manifest, as many as hold a row, before one of
them publishes a row. A commit that is repeated finds what an earlier one left: rows in the history,
or a manifest that it finishes.
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping
from time import time
from typing import NamedTuple

from planaria.core.errors import PlanariaError, UsageError
from planaria.core.ids import NodeId
from planaria.core.topics import check_topic
from planaria.network.client.client import Client
from planaria.network.client.messages import AskBatch, BatchIs, MemberHas, Put
from planaria.records.evidence import MANIFEST, STAGED, Sealer
from planaria.records.manifest import (
    SIGNED_STAGE_BYTES_MAX,
    Manifest,
    Part,
    Portion,
    row_incarnation,
    seal_manifest,
    stage_incarnation,
)
from planaria.records.positions import Intervals
from planaria.records.record import INCARNATION_BYTES, MalformedRecord, Record, Stream, decode

AHEAD_BYTES_MAX = 1 << 20  # staged by a task and not held yet: half of what a link takes
PROGRESS_SECONDS = 60.0  # without any, after which a batch does not settle
MISSING_SECONDS = 30.0  # for which one may seem to be missing: a new supervisor learns members
PAUSE_SECONDS = 0.02  # between two questions; doubles up to
PAUSE_SECONDS_MAX = 0.5

AS_STAGE = ("ring", True)  # of a `Put`: only rings settle batches, and it is one
Sealing = Callable[[Stream, int, int], Record]  # with stream, first number and time
Answers = dict[str, list[MemberHas]]  # by topic


class Unsettled(PlanariaError):
    """A batch was not published, or not whole: whoever commits it again finishes it."""


class Staged(NamedTuple):
    """What one attempt of a task staged for a topic."""

    topic: str
    incarnation: bytes
    rows: int
    time: int  # in which second that began


class Stager:
    """Stages what one attempt of a task writes; waits while too much is not held yet."""

    def __init__(self, client: Client, copies: int) -> None:
        self._client, self._copies = client, copies
        self._streams: dict[str, bytes] = {}
        self._counts: dict[str, int] = {}
        self._times: dict[str, int] = {}
        self._bytes = 0
        self._open: dict[asyncio.Future[object], int] = {}

    async def put(self, topic: str, sealing: Sealing) -> None:
        """Stage the next rows of a topic; raises what prevented that of earlier ones, too."""
        if topic not in self._streams:
            check_topic(topic)
            self._streams[topic] = stage_incarnation(os.urandom(INCARNATION_BYTES))
            self._counts[topic], self._times[topic] = 0, int(time())
        stream = (self._client.publisher, self._streams[topic])
        record = self._signed(topic, sealing(stream, self._counts[topic], self._times[topic]))
        self._counts[topic] += record.count
        asked = self._client.requests.begin(
            Put, topic, record.data, self._copies, False, True, *AS_STAGE
        )
        self._open[asked] = len(record.data)
        self._bytes += len(record.data)
        while self._bytes > AHEAD_BYTES_MAX:
            await self._wait(asyncio.FIRST_COMPLETED)

    def _signed(self, topic: str, record: Record) -> Record:
        """The same rows with the evidence of who stages them, where there are keys."""
        sign = self._client.access.sealer(STAGED, topic)
        if sign is None:
            return record
        if len(record.data) > SIGNED_STAGE_BYTES_MAX:
            raise UsageError(
                f"a row of {len(record.data)} bytes: at most {SIGNED_STAGE_BYTES_MAX} where rows "
                "are signed"
            )
        return decode(sign(record.data))

    async def finish(self) -> list[Staged]:
        """What was staged, once as many members as wanted hold all of it."""
        while self._open:
            await self._wait(asyncio.ALL_COMPLETED)
        return [
            Staged(topic, stream, self._counts[topic], self._times[topic])
            for topic, stream in self._streams.items()
        ]

    async def _wait(self, how: str) -> None:
        done, _ = await asyncio.wait(self._open, return_when=how)
        for one in done:
            self._bytes -= self._open.pop(one)
            one.result()


class Numbering:
    """How far one process has numbered the rows of each query and topic.

    A process numbers in incarnations of its own, as every publisher does. So whatever two of them
    publish, neither takes the other's positions.
    """

    def __init__(self) -> None:
        self._streams: dict[tuple[NodeId, str, str], tuple[bytes, int]] = {}
        self._time = 0

    def manifest(
        self,
        publisher: NodeId,
        query: str,
        batch: int,
        staged: Iterable[Staged],
        sign: Sealer | None = None,
    ) -> Manifest:
        """Number what was staged for a batch."""
        portions: dict[str, Portion] = {}
        parts = sorted(staged)
        self._time = max(self._time, int(time()))
        for part in parts:
            name = (publisher, query, part.topic)
            drawn = (row_incarnation(query, os.urandom(INCARNATION_BYTES)), 0)
            incarnation, first = self._streams.get(name, drawn)
            portion = portions.setdefault(part.topic, Portion(incarnation, []))
            portion.parts.append(Part(part.incarnation, part.rows, first))
            self._streams[name] = (incarnation, first + part.rows)
        since = min(part.time for part in parts)
        times = {"time": self._time, "staged": since}
        return seal_manifest(publisher, query, batch, portions, **times, sign=sign)

    def forget(self, query: str) -> None:
        """Number in new incarnations from now on: numbers were given that may not be used."""
        self._streams = {name: it for name, it in self._streams.items() if name[1] != query}


async def commit(
    client: Client,
    numbering: Numbering,
    query: str,
    batch: int,
    staged: Iterable[Staged],
    *,
    copies: int,
) -> bool:
    """Publish what was staged for a batch, whole and once; False if it was published before.

    Raises Unsettled if something that was staged is missing, or if it does not settle; repeated, it
    goes on where it was.
    """
    rows = list(staged)
    if not rows:
        return False
    sign = client.access.sealer(MANIFEST, "")
    manifest = numbering.manifest(client.publisher, query, batch, rows, sign)
    new = False
    try:
        new = await Commit(client, copies).settle(manifest)
    finally:
        if not new:
            numbering.forget(query)
    return new


class Commit:
    """One batch on its way."""

    def __init__(self, client: Client, copies: int) -> None:
        self._client, self._copies = client, copies

    async def settle(self, manifest: Manifest) -> bool:
        """Settle this manifest, or finish the one that has its batch; was it this one?"""
        answers = await self._ask_all(manifest)
        everybody = [has for them in answers.values() for has in them]
        rivals = [_manifest(data) for data in sorted({has.rival for has in everybody})]
        found = {it.record.key: it for it in rivals if it is not None}
        settled = {has.last for has in everybody if has.batch >= manifest.batch}
        if settled:  # by this batch, or the query has gone on
            for key in sorted(settled & found.keys()):
                await self._publish(found[key], await self._ask_all(found[key]))
            return False
        if len(found) > 1:
            raise Unsettled(
                "members hold two manifests of it: do two drivers write with one checkpoint? "
                "Stop one; what neither settles expires within an hour"
            )
        for earlier in found.values():
            await self._settle(earlier, await self._ask_all(earlier))
            return False
        await self._settle(manifest, answers)
        return True

    async def _settle(self, manifest: Manifest, answers: Answers) -> None:
        """Have enough members hold the manifest; only then publish."""
        answers = await self._without_missing(manifest, answers)
        wish = (self._copies, False, True, *AS_STAGE)
        for topic in manifest.portions:
            await self._client.requests.begin(Put, topic, manifest.record.data, *wish)
        await self._publish(manifest, answers)

    async def _without_missing(self, manifest: Manifest, answers: Answers) -> Answers:
        """Raise Unsettled if something is staged nowhere; who was silent is asked again."""
        end = asyncio.get_running_loop().time() + MISSING_SECONDS
        while True:
            lacks = _lacks(manifest, answers)
            if not lacks:
                return answers
            if asyncio.get_running_loop().time() > end:
                topic, count = next(iter(lacks.items()))
                raise Unsettled(
                    f"{count} of {len(manifest.portions[topic].parts)} stages for {topic} are "
                    "missing: they have expired, or their nodes are down"
                )
            await asyncio.sleep(PAUSE_SECONDS_MAX)
            answers = await self._ask_all(manifest)

    async def _publish(self, manifest: Manifest, answers: Answers) -> None:
        await asyncio.gather(
            *(self._publish_topic(manifest, it, answers.get(it, [])) for it in manifest.portions)
        )

    async def _publish_topic(self, manifest: Manifest, topic: str, have: list[MemberHas]) -> None:
        """Have members publish their parts, some at a time, until enough have published all."""
        loop = asyncio.get_running_loop()
        before, since, pause = -1, loop.time(), PAUSE_SECONDS
        members = tuple(has.member for has in have if has.staged or has.settled or has.pieces)
        while True:
            question = (manifest.record.data, True, members, _spreaders(manifest, topic, have))
            found = await self._client.requests.ask(AskBatch, BatchIs, topic, *question)
            have = found.answers or have
            enough, done = self._settled(manifest, topic, found.answers)
            if enough:
                return
            if done > before:
                before, since, pause = done, loop.time(), PAUSE_SECONDS
            elif loop.time() - since > PROGRESS_SECONDS:
                raise Unsettled(f"{topic} does not settle: too few members have its rows")
            else:
                await asyncio.sleep(pause)
                pause = min(2 * pause, PAUSE_SECONDS_MAX)
                members = ()  # others may be there by now

    def _settled(self, manifest: Manifest, topic: str, have: list[MemberHas]) -> tuple[bool, int]:
        """Have enough members published all parts; how much has been published?"""
        counts = [0] * len(manifest.portions[topic].parts)
        for has in have:
            for at in has.settled:
                if 0 <= at < len(counts):
                    counts[at] += 1
        wanted = min(self._copies, len(have))
        return bool(have) and min(counts) >= max(1, wanted), sum(counts)

    async def _ask_all(self, manifest: Manifest) -> Answers:
        asked = [
            self._client.requests.ask(AskBatch, BatchIs, topic, manifest.record.data)
            for topic in manifest.portions
        ]
        found = await asyncio.gather(*asked)
        return {topic: it.answers for topic, it in zip(manifest.portions, found, strict=True)}


def _manifest(data: bytes) -> Manifest | None:
    try:
        return Manifest(decode(data))
    except MalformedRecord:
        return None


def _lacks(manifest: Manifest, answers: Mapping[str, list[MemberHas]]) -> dict[str, int]:
    """Of which topics how many parts are not there, all members that hold some taken together."""
    lacks = {}
    for topic, portion in manifest.portions.items():
        have = answers.get(topic, [])
        whole = {at for has in have for at in (*has.staged, *has.settled)}
        found = [Intervals() for _ in portion.parts]
        for has in have:
            for at, lo, hi in has.pieces:
                if 0 <= at < len(found):
                    found[at].add(lo, hi)
        missing = sum(
            at not in whole and bool(found[at].missing(0, part.count))
            for at, part in enumerate(portion.parts)
        )
        if missing:
            lacks[topic] = missing
    return lacks


def _spreaders(manifest: Manifest, topic: str, have: list[MemberHas]) -> dict[int, list[int]]:
    """Who broadcasts which parts: the first that has one staged; else all that have some of it."""
    left = set(range(len(manifest.portions[topic].parts)))
    spread: dict[int, set[int]] = {}
    for has in have:
        spread[has.member] = left & {*has.staged}
        left -= {*has.staged}
    for has in have:
        spread[has.member] |= left & {at for at, *_ in has.pieces}
    return {member: sorted(parts) for member, parts in spread.items()}


def named(query: str, batch: int | str, error: PlanariaError) -> PlanariaError:
    """The same mistake, with the batch that it is about."""
    kind = UsageError if isinstance(error, UsageError) else Unsettled
    return kind(f"batch {batch} of query {query}: {error}")
