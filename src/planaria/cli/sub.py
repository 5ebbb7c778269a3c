"""`planaria sub`: print what is published, one publication a line."""

import asyncio
import json
import os
import stat
import sys
from base64 import b64encode
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from planaria.cli.connecting import connecting, overlay_option
from planaria.cli.numbers import Finite
from planaria.cli.streams import needed_stdout, write_nowhere
from planaria.cli.tables import visible
from planaria.core.errors import UsageError
from planaria.core.node import Notice
from planaria.core.topics import check_filter
from planaria.network.client.client import Client, connect
from planaria.network.client.events import Event
from planaria.network.client.places import WORDS, Since, beginning

TIMED_OUT = 27  # as mosquitto_sub says it
DATE_DIGITS = 8  # of 20261116: more are seconds


@click.command()
@click.argument("pattern")
@connecting
@click.option(
    "--since",
    default="now",
    show_default=True,
    metavar="all|now|last|TIME",
    help="Where to begin; TIME as 2026-11-16T09:00, with its zone, or in seconds since 1970.",
)
@click.option("--where", metavar="CONDITION", help="Such as \"delay > 60 AND carrier = 'UA'\".")
@click.option(
    "--compacted",
    is_flag=True,
    help="Leave out what a later publication with the same key replaced.",
)
@overlay_option
@click.option("-C", "--count", type=click.IntRange(1), help="End after so many publications.")
@click.option(
    "-W",
    "--timeout",
    type=Finite(0, min_open=True),
    metavar="SECONDS",
    help="End after that time, with exit code 27.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.option("-v", "--verbose", is_flag=True, help="Print topics, and on stderr what happens.")
def sub(
    pattern: str,
    servers: str | None,
    context: str | None,
    credentials: Path | None,
    insecure: bool | None,
    since: str,
    where: str | None,
    compacted: bool,
    overlay: str | None,
    count: int | None,
    timeout: float | None,
    as_json: bool,
    verbose: bool,
) -> int:
    """Print what is published on topics that match PATTERN (`+` one level, `#` the rest)."""
    needed_stdout()
    check_filter(pattern)
    begin = read_since(since)
    client = connect(servers, context=context, credentials=credentials, insecure=insecure)
    options = {
        "since": begin,
        "where": where,
        "compacted": compacted,
        "notices": verbose,
        "overlay": overlay,
    }
    printer = Printer(as_json=as_json, verbose=verbose)
    try:
        return asyncio.run(_print(client, pattern, options, printer, count, timeout))
    except BrokenPipeError:
        # Nobody reads any more: all is well, and Python must not write what is left at exit.
        write_nowhere(sys.stdout)
        return 0


def read_since(text: str) -> Since:
    """Where to begin, as a word or a time; raises UsageError for anything else."""
    if text in WORDS:
        return text
    try:
        seconds = text.isascii() and text.isdigit() and len(text) > DATE_DIGITS
        found = int(text) if seconds else datetime.fromisoformat(text)
        beginning(found)  # which is refused before anybody is dialled
        return found
    except ValueError:
        raise UsageError(
            f"since {text!r}: all, now, last, or a time: 2026-11-16T09:00, or seconds since 1970"
        ) from None


async def _print(
    client: Client,
    pattern: str,
    options: dict[str, Any],
    printer: "Printer",
    count: int | None,
    timeout: float | None,
) -> int:
    """Print until the count is reached (0) or the time is over (27).

    Raises BrokenPipeError when whoever reads is gone, also while there is nothing to print.
    """
    with Reader() as reader:
        try:
            async with asyncio.timeout(timeout), client:
                events = client.subscribe(pattern, **options)
                if printer.verbose:
                    await events.ready()
                    click.echo(f"planaria: {pattern} at {events.channel.address}", err=True)
                async for batch in events.batches():
                    count = printer.show(batch, count)
                    if count == 0:
                        return 0
        except TimeoutError:
            return TIMED_OUT
        except asyncio.CancelledError:
            if reader.gone:
                raise BrokenPipeError from None
            raise
    return 0


class Reader:
    """Whoever reads our output: when that ends, the current task is cancelled."""

    def __init__(self) -> None:
        self.gone = False
        self._descriptor = sys.stdout.fileno()
        self._is_pipe = stat.S_ISFIFO(os.fstat(self._descriptor).st_mode)
        self._task = asyncio.current_task()

    def __enter__(self) -> "Reader":
        if self._is_pipe:
            asyncio.get_running_loop().add_reader(self._descriptor, self._hung_up)
        return self

    def __exit__(self, *error: object) -> None:
        if self._is_pipe:
            asyncio.get_running_loop().remove_reader(self._descriptor)

    def _hung_up(self) -> None:
        if self._task is not None and not self.gone:
            self.gone = True
            self._task.cancel()


class Printer:
    """Writes publications to stdout and notices to stderr."""

    def __init__(self, *, as_json: bool, verbose: bool) -> None:
        self.as_json, self.verbose = as_json, verbose

    def show(self, batch: list[Event | Notice], left: int | None) -> int | None:
        """Print at most `left` of them; returns how many are left then."""
        lines = []
        for one in batch:
            if left == 0:
                break
            if isinstance(one, Notice):
                detail = json.dumps(one.detail, default=str)
                click.echo(f"planaria: {one.kind} {visible(one.topic)} {detail}", err=True)
            else:
                lines.append(self._line(one))
                left = None if left is None else left - 1
        sys.stdout.buffer.write(b"".join(lines))
        sys.stdout.buffer.flush()
        return left

    def _line(self, event: Event) -> bytes:
        if self.as_json:
            return json.dumps(plain(event)).encode() + b"\n"
        topic = visible(event.topic).encode() + b" " if self.verbose else b""
        return topic + event.payload + b"\n"


def plain(event: Event) -> dict[str, Any]:
    """The event as JSON can say it: bytes that are no text under a name that says so."""
    return {
        "topic": event.topic,
        **_text("payload", event.payload),
        **({} if event.key is None else _text("key", event.key)),
        "headers": event.headers,
        "publisher": event.publisher,
        "incarnation": event.incarnation.hex(),
        "sequence": event.sequence,
        "id": event.id.hex(),
        "timestamp": event.timestamp,
        "late": event.late,
    }


def _text(name: str, value: bytes) -> dict[str, str]:
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": b64encode(value).decode()}
