"""An archive back into topics: resumable, each publication once.

A restored topic is one stream of whoever restores it, whose incarnation is made of the archive's
id and the topic's name. The n-th publication of the archive always gets the number n: whatever is
repeated after a crash is at the position that it had, and the network holds it once.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from hashlib import blake2b
from time import time

from planaria.core.errors import UsageError
from planaria.network.client.access import Access, shown
from planaria.network.client.messages import COPIES, Put, Stored
from planaria.network.client.requests import Requests
from planaria.network.client.servers import Servers
from planaria.network.context import Context
from planaria.network.files import write_atomically
from planaria.network.identity import handle_of
from planaria.records.evidence import PUBLISHED
from planaria.records.packing import packed
from planaria.records.record import INCARNATION_BYTES, Draft, Stream, seal
from planaria.spark.archive import INNER, Archive
from planaria.spark.source.overview import Overview

AHEAD = 16  # records under way


def restore(context: Context, found: Archive, topic: str, copies: int = COPIES) -> tuple[int, int]:
    """Publish what the archive has of a topic; returns how much of how much was missing.

    Raises UsageError if somebody else has begun to restore it.
    """
    id = str(found.described["id"])
    access = Access(*shown(context, None if context.credentials else f"archive {id}"))
    stream = (handle_of(access.hello.id), _incarnation(id, topic))
    _claim(found, topic, stream)
    overview = Overview(context, [topic])
    try:
        marks = overview.available(overview.fresh()).get(topic, {})
    finally:
        overview.close()
    first = marks[stream].next if stream in marks else 0
    total = asyncio.run(_publish(context, access, found, topic, stream, first, copies))
    return total - first, total


def _incarnation(id: str, topic: str) -> bytes:
    text = f"{id}\n{topic}".encode()
    return blake2b(text, digest_size=INCARNATION_BYTES, person=b"restored topic").digest()


def _claim(found: Archive, topic: str, stream: Stream) -> None:
    """Remember who restores a topic: under another name all of it would be published again."""
    path = found.directory / INNER / f"restored-{stream[1].hex()}"
    if not path.exists():
        write_atomically(path, f"{stream[0]}\n")
    if path.read_text().strip() != str(stream[0]):
        raise UsageError(
            f"{topic} was restored as publisher {path.read_text().strip()}: use its credentials"
        )


async def _publish(
    context: Context,
    access: Access,
    found: Archive,
    topic: str,
    stream: Stream,
    first: int,
    copies: int,
) -> int:
    """Publish from number `first` on; returns how many there are in all."""
    requests = Requests(Servers(context.servers), access)
    sign = access.sealer(PUBLISHED, topic)
    await requests.channel.open()
    try:
        number, asked = 0, deque[asyncio.Future[Stored]]()
        for drafts in packed(_drafts(found, topic)):
            wanted = drafts[max(0, first - number) :]
            number += len(drafts)
            if wanted:
                record = seal(stream, number - len(wanted), wanted, time=int(time()), sign=sign)
                asked.append(requests.begin(Put, topic, record.data, copies))
            if len(asked) >= AHEAD:
                await asked.popleft()
        while asked:
            await asked.popleft()
        return number
    finally:
        await requests.channel.close()


def _drafts(found: Archive, topic: str) -> Iterator[Draft]:
    """The archive's publications."""
    for batch in found.tables(topic):
        names = ("payload", "key", "headers", "timestamp")
        columns = [batch.column(name) for name in names[:3]]
        stamps = batch.column("timestamp").cast("int64")
        for payload, key, headers, stamp in zip(
            *(column.to_pylist() for column in (*columns, stamps)), strict=True
        ):
            yield Draft(payload, key, tuple(headers), stamp)
