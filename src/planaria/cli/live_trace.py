"""The traces of all nodes of a running network, as one."""

import asyncio
from time import time_ns
from typing import NamedTuple
from urllib.error import HTTPError
from urllib.request import urlopen

from msgspec import json

from planaria.core.trace import Row
from planaria.network.context import Context
from planaria.network.survey import Seen, Surveyor

SLACK_SECONDS = 30.0  # for an answer to come, beyond the time that is traced


class LiveTrace(NamedTuple):
    """The rows of all nodes in the order of their clocks, and who is missing, in words."""

    began: int
    nodes: int
    rows: list[Row]
    missing: list[str]


async def trace_network(context: Context, seconds: float) -> LiveTrace:
    """Have every node trace itself for some seconds, all at once."""
    async with Surveyor(context) as surveyor:
        survey = await surveyor.look()
    began = time_ns() // 1_000_000
    asked = [_fetch(seen, seconds) for seen in survey.nodes.values()]
    found = await asyncio.gather(*asked)
    rows, missing = list[Row](), [f"{one.addresses[0]}: {one.reason}" for one in survey.silent]
    for seen, answer in zip(survey.nodes.values(), found, strict=True):
        if isinstance(answer, str):
            missing.append(f"{seen.called}: {answer}")
            continue
        for line in answer.splitlines():
            row = json.decode(line)
            if "left_out" in row:
                missing.append(f"{seen.called}: {row['left_out']} rows did not fit")
            else:
                rows.append(Row(**row))
    rows.sort(key=lambda row: row.tick)
    answered = sum(isinstance(answer, bytes) for answer in found)
    return LiveTrace(began, answered, rows, missing)


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
