"""The traces of all nodes of a running network, as one, and a film of it."""

import asyncio
from contextlib import suppress
from typing import NamedTuple
from urllib.error import HTTPError
from urllib.request import urlopen

from msgspec import json

from planaria.core.errors import UsageError
from planaria.core.ids import NodeId
from planaria.core.trace import Row
from planaria.network.context import Context
from planaria.network.survey import Seen, Surveyor
from planaria.web.filming import Film
from planaria.web.watching import Watcher

SLACK_SECONDS = 30.0  # for an answer to come, beyond the time that is traced
CLOCK_SECONDS = 0.1  # by which a clock may be wrong before its rows are moved


class LiveTrace(NamedTuple):
    """The rows of all nodes in the order of their clocks, and who is missing, in words.

    Clocks that were found to be wrong are set right. `pictures` show what `drawn` names.
    """

    began: int
    nodes: int
    rows: list[Row]
    missing: list[str]
    names: dict[NodeId, str]
    pictures: str
    drawn: str


async def trace_network(
    context: Context, seconds: float, topic: str = "", overlay: str = "ring"
) -> LiveTrace:
    """Have every node trace itself for some seconds, all at once, and look at all meanwhile."""
    async with Surveyor(context) as surveyor:
        survey = await surveyor.look()
        film = Film(Watcher(surveyor), topic, overlay)
        await begin(film)
        filming = asyncio.ensure_future(film.run())
        try:
            asked = [_fetch(seen, seconds) for seen in survey.nodes.values()]
            found = await asyncio.gather(*asked)
        finally:
            filming.cancel()
            with suppress(asyncio.CancelledError):
                await filming
    rows, missing = [*film.rows()], [f"{one.addresses[0]}: {one.reason}" for one in survey.silent]
    for seen, answer in zip(survey.nodes.values(), found, strict=True):
        if isinstance(answer, str):
            missing.append(f"{seen.called}: {answer}")
            continue
        for line in answer.splitlines():
            row = json.decode(line)
            if "left_out" in row:
                missing.append(f"{seen.called}: {row['left_out']} rows did not fit")
            else:
                rows.append(_timed(Row(**row), seen, film.began))
    rows.sort(key=lambda row: row.tick)
    answered = sum(isinstance(answer, bytes) for answer in found)
    return LiveTrace(film.began, answered, rows, missing, film.names(), film.album(), film.drawn)


async def begin(film: Film) -> None:
    """Take the first look; raises UsageError if nobody answers for as long as a trace waits."""
    try:
        async with asyncio.timeout(SLACK_SECONDS):
            while not await film.take():
                await asyncio.sleep(1)
    except TimeoutError:
        raise UsageError(
            "no node answers any more: nothing can be traced; see `planaria doctor`"
        ) from None


def _timed(row: Row, seen: Seen, began: int) -> Row:
    """A row by our clock, if the node's is wrong; nothing happened before we looked."""
    wrong = abs(seen.clock) > max(seen.trip, CLOCK_SECONDS)
    ahead = round(1000 * seen.clock) if wrong else 0
    return row._replace(tick=max(began, row.tick - ahead))


async def _fetch(seen: Seen, seconds: float) -> bytes | str:
    """The answer of one node, or why there is none."""
    if seen.status.http is None:
        return "answers no HTTP: start it with --http"
    address = f"http://{seen.status.http}/trace?seconds={seconds}"
    try:
        return await asyncio.to_thread(_get, address, seconds + SLACK_SECONDS)
    except HTTPError as error:
        return f"{error.code} {error.read().decode(errors='replace')}"
    except OSError as error:
        return str(getattr(error, "reason", None) or error)


def _get(address: str, seconds: float) -> bytes:
    with urlopen(address, timeout=seconds) as answer:  # noqa: S310 - always http
        body: bytes = answer.read()
        return body
