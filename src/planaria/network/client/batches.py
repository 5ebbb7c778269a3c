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
    STAGED_RECORD_BYTES_MAX,
    Manifest,
    Part,
    Portion,
    decode_manifest,
    row_incarnation,
    seal_manifest,
    settleable,
    stage_incarnation,
)
from planaria.records.positions import Intervals
from planaria.records.record import INCARNATION_BYTES, Record, Stream, decode

AHEAD_BYTES_MAX = 1 << 20  # staged by a task and not held yet: half of what a link takes
PROGRESS_SECONDS = 60.0  # without any, after which a batch does not settle
MISSING_SECONDS = 30.0  # for which one may seem to be missing: a new supervisor learns members
SILENT_SECONDS = 10.0  # for which who is silent is asked again: it may hold another manifest
PAUSE_SECONDS = 0.02  # between two questions; doubles up to
PAUSE_SECONDS_MAX = 0.5

AS_STAGE = ("ring", True)  # of a `Put`: only rings settle batches, and it is one
Sealing = Callable[[Stream, int, int], Record]  # with stream, first number and time
Answers = dict[str, list[MemberHas]]  # by topic
TWO_DRIVERS = (
    "members hold two manifests of it: do two drivers write with one checkpoint? "
    "Stop one; what neither settles expires within an hour"
)


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
        if not settleable(record):
            raise UsageError(
                f"a record of {len(record.data)} bytes: at most {STAGED_RECORD_BYTES_MAX} are "
                "staged; shorten what its rows have"
            )
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
        return record if sign is None else decode(sign(record.data))

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
    held: dict[str, int] | None = None,
) -> bool:
    """Publish what was staged for a batch, whole and once; False if it was published before.

    `held` takes how many members are known to hold every row of each topic that was published now:
    fewer than `copies` where a topic has fewer members.
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
        new = await Commit(client, copies, held).settle(manifest)
    finally:
        if not new:
            numbering.forget(query)
    return new


class Commit:
    """One batch on its way."""

    def __init__(self, client: Client, copies: int, held: dict[str, int] | None = None) -> None:
        self._client, self._copies = client, copies
        self.held: dict[str, int] = {} if held is None else held  # by topic, see `commit`

    async def settle(self, manifest: Manifest) -> bool:
        """Settle this manifest, or finish the one that has its batch; was it this one?

        What members say is judged anew each time: who was silent before may hold another one.
        """
        loop = asyncio.get_running_loop()
        since, chosen = loop.time(), manifest
        while True:
            answers, silent = await self._ask_all(chosen)
            found, settled = _judged(chosen, answers)
            begun = [it for key, it in sorted(found.items()) if key in settled]
            for one in begun:
                await self._publish(one, (await self._ask_all(one))[0])
            if begun:
                return False
            rivals = [it for it in found.values() if it is not chosen]
            if rivals and not settled:
                if len(rivals) > 1 or chosen is not manifest:
                    raise Unsettled(TWO_DRIVERS)
                chosen = rivals[0]
                continue
            why = _partly(chosen, answers) if settled else _lacking(chosen, answers)
            if not why and settled:  # by this batch, or the query has gone on
                return False
            late = loop.time() - since
            if not why and (not silent or late > SILENT_SECONDS):
                await self._settle(chosen, answers)
                return chosen is manifest
            if why and late > MISSING_SECONDS:
                raise Unsettled(why)
            await asyncio.sleep(PAUSE_SECONDS_MAX)

    async def _settle(self, manifest: Manifest, answers: Answers) -> None:
        """Have enough members hold the manifest, and all that hold a part; only then publish."""
        for topic, have in answers.items():
            holders = _holders(have)
            wish = (max(self._copies, len(holders)), False, True, *AS_STAGE, holders)
            await self._client.requests.begin(Put, topic, manifest.record.data, *wish)
        await self._publish(manifest, answers)

    async def _publish(self, manifest: Manifest, answers: Answers) -> None:
        await asyncio.gather(
            *(self._publish_topic(manifest, it, answers.get(it, [])) for it in manifest.portions)
        )

    async def _publish_topic(self, manifest: Manifest, topic: str, have: list[MemberHas]) -> None:
        """Have members publish their parts, some at a time, until enough have published all."""
        loop = asyncio.get_running_loop()
        before, since, pause = -1, loop.time(), PAUSE_SECONDS
        members = _holders(have)
        while True:
            question = (manifest.record.data, True, members, _spreaders(manifest, topic, have))
            found = await self._client.requests.ask(AskBatch, BatchIs, topic, *question)
            have = found.answers or have
            held, enough, done = self._settled(manifest, topic, found)
            if enough:
                self.held[topic] = held
                return
            if done > before:
                before, since, pause = done, loop.time(), PAUSE_SECONDS
            elif loop.time() - since > PROGRESS_SECONDS:
                raise Unsettled(f"{topic} does not settle: too few members have its rows")
            else:
                await asyncio.sleep(pause)
                pause = min(2 * pause, PAUSE_SECONDS_MAX)
                members = ()  # others may be there by now

    def _settled(self, manifest: Manifest, topic: str, found: BatchIs) -> tuple[int, bool, int]:
        """How many members have published every part, is it enough, and how many rows are it?"""
        counts = [0] * len(manifest.portions[topic].parts)
        for has in found.answers:
            for at in has.settled:
                if 0 <= at < len(counts):
                    counts[at] += 1
        held, rows = min(counts), sum(it.rows for it in found.answers)
        return held, held >= max(1, min(self._copies, found.asked)), rows

    async def _ask_all(self, manifest: Manifest) -> tuple[Answers, bool]:
        """What members of all topics have of it; is there one that did not answer?"""
        asked = [
            self._client.requests.ask(AskBatch, BatchIs, topic, manifest.record.data)
            for topic in manifest.portions
        ]
        found = dict(zip(manifest.portions, await asyncio.gather(*asked), strict=True))
        silent = any(len(it.answers) < it.asked for it in found.values())
        return {topic: it.answers for topic, it in found.items()}, silent


def _judged(chosen: Manifest, answers: Answers) -> tuple[dict[bytes, Manifest], set[bytes]]:
    """All manifests of its batch by their keys, and the keys of those that are in a history.

    These may be of a later batch, too.
    """
    everybody = [has for them in answers.values() for has in them]
    rivals = [decode_manifest(data) for data in sorted({has.rival for has in everybody})]
    found = {it.record.key: it for it in (chosen, *rivals) if it is not None}
    return found, {has.last for has in everybody if has.batch >= chosen.batch}


def _holders(have: list[MemberHas]) -> tuple[int, ...]:
    """Who has something of a manifest."""
    return tuple(has.member for has in have if has.staged or has.settled or has.pieces)


def _partly(manifest: Manifest, answers: Answers) -> str:
    """Which topic lacks a batch that was settled in others, in one line."""
    for topic, have in answers.items():
        if not any(has.batch >= manifest.batch for has in have):
            return (
                f"it was published in part: no row of it is on {topic}, and nobody holds the "
                "manifest of the others any more"
            )
    return ""


def _lacking(manifest: Manifest, answers: Answers) -> str:
    """What of it is staged nowhere, in one line."""
    for topic, count in _lacks(manifest, answers).items():
        return (
            f"{count} of {len(manifest.portions[topic].parts)} stages for {topic} are "
            "missing: they have expired, or their nodes are down"
        )
    return ""


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
    """Who broadcasts which parts: they take turns who have one staged whole; else all that have
    some of it. The same whoever answered first: else a part that changes hands is spread by nobody.
    """
    have = sorted(have, key=lambda has: has.member)
    whole = {has.member: {*has.staged} for has in have}
    some = {has.member: {at for at, *_ in has.pieces} for has in have}
    spread: dict[int, list[int]] = {has.member: [] for has in have}
    for at in range(len(manifest.portions[topic].parts)):
        able = [member for member, parts in whole.items() if at in parts]
        one = [min(able, key=lambda member: len(spread[member]))] if able else []
        for member in one or [member for member, parts in some.items() if at in parts]:
            spread[member].append(at)
    return spread


def named(query: str, batch: int | str, error: PlanariaError) -> PlanariaError:
    """The same mistake, with the batch that it is about."""
    kind = UsageError if isinstance(error, UsageError) else Unsettled
    return kind(f"batch {batch} of query {query}: {error}")
