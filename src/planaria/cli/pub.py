"""`planaria pub`: publish one payload, or each line of the standard input."""

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import click

from planaria.cli.connecting import connecting, overlay_option
from planaria.cli.streams import needed_stdin
from planaria.core.errors import UsageError
from planaria.core.topics import check_topic
from planaria.network.client.client import Client, connect
from planaria.network.client.events import Ack
from planaria.network.client.messages import COPIES
from planaria.records.record import PAYLOAD_BYTES_MAX, Draft
from planaria.records.tables import Headers

CHUNK_BYTES = 1 << 16  # read at a time


@click.command()
@click.argument("topic")
@click.argument("payload", required=False)
@connecting
@click.option("--lines", is_flag=True, help="Publish each line of the standard input.")
@click.option("--key", help="Of each publication, for those who read it.")
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="May be repeated.")
@click.option(
    "--copies",
    default=COPIES,
    show_default=True,
    type=click.IntRange(1, 64),
    help="Members of the topic that must hold it before it counts as published.",
)
@click.option(
    "--durability",
    default="disk",
    show_default=True,
    type=click.Choice(["disk", "memory"]),
    help="Where they must hold it.",
)
@overlay_option
def pub(
    topic: str,
    payload: str | None,
    servers: str | None,
    context: str | None,
    credentials: Path | None,
    insecure: bool | None,
    lines: bool,
    key: str | None,
    headers: tuple[str, ...],
    copies: int,
    durability: str,
    overlay: str | None,
) -> None:
    """Publish PAYLOAD on TOPIC; without it or for "-", the standard input, whole or by --lines.

    Returns when as many members hold it as --copies says, or all that there are.
    """
    payload = None if payload == "-" else payload
    if lines and payload is not None:
        raise UsageError("give a payload or --lines, not both")
    check_topic(topic)
    draft = Draft(b"", None if key is None else os.fsencode(key), _pairs(headers))
    if payload is None:
        needed_stdin()  # says so before anybody is dialled
    client = connect(
        servers, context=context, credentials=credentials, insecure=insecure, oneshot=not lines
    )
    body = None if lines else os.fsencode(payload) if payload is not None else _whole()
    wish = {"copies": copies, "durability": durability, "overlay": overlay}
    ack = asyncio.run(_publish(client, topic, draft, body, wish))
    if ack is not None and 0 < ack.copies < copies:
        members = f"{ack.members} member{'s' * (ack.members != 1)}"
        held = f"{ack.copies} of {copies} copies: the topic has {members}"
        click.echo(f"planaria: {held}", err=True)


async def _publish(
    client: Client,
    topic: str,
    draft: Draft,
    body: bytes | None,
    wish: dict[str, Any],
) -> Ack | None:
    """Publish one body, or, if it is None, all lines that come in."""
    async with client:
        if body is None:
            drafts = (draft._replace(payload=line) async for line in _lines())
            return await client.publish_many(topic, drafts, **wish)
        headers = dict(draft.headers)
        return await client.publish(topic, body, key=draft.key, headers=headers, **wish)


def _pairs(headers: tuple[str, ...]) -> Headers:
    pairs = [header.partition("=") for header in headers]
    for name, equals, _ in pairs:
        if not name or not equals:
            raise UsageError(f"header {name!r}: write NAME=VALUE")
        if any("\ud800" <= it <= "\udfff" for it in name):  # as bytes come that are no text
            raise UsageError(f"header {name!r}: a name is valid Unicode text")
        if [it for it, *_ in pairs].count(name) > 1:
            raise UsageError(f"header {name!r}: given twice, a publication has one of a name")
    return tuple((name, os.fsencode(value)) for name, _, value in pairs)


def _whole() -> bytes:
    """The standard input as one payload."""
    data = needed_stdin().buffer.read(PAYLOAD_BYTES_MAX + 1)
    if len(data) > PAYLOAD_BYTES_MAX:
        raise UsageError(f"more than {PAYLOAD_BYTES_MAX} bytes: split it, or publish --lines")
    return data


async def _lines() -> AsyncIterator[bytes]:
    """The lines of the standard input as they come, without their ends.

    Raises UsageError that names the first one that is too long.
    """
    rest, before = b"", 0
    async for chunk in _chunks(needed_stdin().fileno()):
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield _fitting(line, before)
            before += 1
        _fitting(rest, before)  # also a line without an end must not fill the memory
    if rest:
        yield rest


def _fitting(line: bytes, before: int) -> bytes:
    """The line, if it can be published; what came before it is, when `publish_many` raises."""
    if len(line) <= PAYLOAD_BYTES_MAX:
        return line
    words = f"line {before + 1}: more than {PAYLOAD_BYTES_MAX} bytes: split it"
    if before:
        words += f"; the {before} before it {'are' if before > 1 else 'is'} published"
    raise UsageError(words)


async def _chunks(descriptor: int) -> AsyncIterator[bytes]:
    """What comes in: a file is read, all else awaited, so that Ctrl-C ends it at once."""
    loop = asyncio.get_running_loop()
    awaited = not stat.S_ISREG(os.fstat(descriptor).st_mode)
    while True:
        if awaited:
            readable = loop.create_future()
            try:
                loop.add_reader(descriptor, _resolve, readable)
            except PermissionError:  # /dev/null and its like: they never make one wait
                awaited = False
                continue
            try:
                await readable
            finally:
                loop.remove_reader(descriptor)
        chunk = os.read(descriptor, CHUNK_BYTES)
        if not chunk:
            return
        yield chunk
        await asyncio.sleep(0)


def _resolve(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
