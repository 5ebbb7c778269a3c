"""The options of a read, understood and checked once, where the query is made."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from time import time
from typing import Any, NamedTuple

from planaria.core.errors import UsageError, unknown
from planaria.core.topics import check_filter
from planaria.network.client.patterns import Patterns
from planaria.network.context import parse_flag, split_servers
from planaria.records.record import TIME_MAX
from planaria.spark.source.offsets import FORM, Offset, Vectors, fingerprint, vectors_from_json

COLUMNS = ("key", "value", "topic", "publisher", "sequence", "timestamp", "headers", "id")
NAMES = (
    "servers", "context", "credentials", "insecure", "subscribe", "startingOffsets",
    "endingOffsets", "maxRowsPerTrigger", "failOnDataLoss", "columns", "schema", "filter",
    "minPartitions", "verify", "path",
)  # fmt: skip
EARLIEST, LATEST, TIME, GIVEN = "earliest", "latest", "time", "given"
PARTITIONS_MAX = 10_000
CLOCKS_SECONDS = 60  # by which the clock of whoever wrote a time may be ahead of ours


class Where(NamedTuple):
    """Where a range begins or ends: a word, a time in seconds since 1970, or given positions."""

    kind: str
    time: int = 0
    vectors: Vectors = {}  # noqa: RUF012 - nobody changes it


class Network(NamedTuple):
    """Which nodes to talk to, and as whom, as `planaria.connect` takes it."""

    servers: tuple[str, ...] | None
    context: str | None
    credentials: str | None
    insecure: bool | None


class ReadOptions(NamedTuple):
    """What is to be read."""

    network: Network
    patterns: tuple[str, ...]
    columns: tuple[str, ...] | None
    schema: str | None
    filter: str | None
    starting: Where | None
    ending: Where | None
    rows_max: int | None
    fail_on_data_loss: bool
    partitions: int | None
    verify: bool

    @property
    def fingerprint(self) -> str:
        """What offsets of this subscription are marked with."""
        return fingerprint(self.patterns)

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> "ReadOptions":
        """Understand options as Spark hands them over; raises UsageError that names the option."""
        options = {name.lower(): value for name, value in given.items()}
        known = {name.lower(): name for name in NAMES}
        for name in options:
            if name not in known:
                raise unknown("option", name, NAMES)
        subscribe = option_or_path(options, "subscribe")
        if not subscribe:
            raise UsageError("option subscribe: name a topic or pattern, as in weather/#")
        with option("subscribe"):
            patterns = Patterns(check_filter(it.strip()) for it in subscribe.split(","))
        filter = options.get("filter")
        if filter is not None:
            from planaria.filters.sql import parse

            with option("filter"):
                parse(filter)
        starting = _where("startingOffsets", options.get("startingoffsets"), patterns)
        ending = _where("endingOffsets", options.get("endingoffsets"), patterns)
        _check_range(starting, ending)
        return cls(
            network_of(options),
            tuple(sorted(patterns)),
            _columns(options.get("columns")),
            options.get("schema"),
            filter,
            starting,
            ending,
            number_of("maxRowsPerTrigger", options.get("maxrowspertrigger")),
            _flag("failOnDataLoss", options.get("failondataloss", "true")),
            number_of("minPartitions", options.get("minpartitions"), PARTITIONS_MAX),
            _flag("verify", options.get("verify", "true")),
        )


@contextmanager
def option(name: str) -> Iterator[None]:
    """Name the option in what is said of its value."""
    try:
        yield
    except ValueError as error:
        raise UsageError(f"option {name}: {error}") from None


def option_or_path(options: Mapping[str, str], name: str) -> str | None:
    """What an option gives, or the path in its place; raises UsageError if they are not one."""
    given, path = options.get(name), options.get("path")
    if given and path and given.strip() != path.strip():
        raise UsageError(f"option {name}: {given!r}, but the path is {path!r}; give one of them")
    return given or path


def network_of(options: Mapping[str, str]) -> Network:
    """Which network options name."""
    servers = options.get("servers")
    insecure = options.get("insecure")
    with option("servers"):
        addresses = None if servers is None else split_servers(servers)
    return Network(
        addresses,
        options.get("context"),
        options.get("credentials"),
        None if insecure is None else _flag("insecure", insecure),
    )


def _flag(name: str, text: str) -> bool:
    with option(name):
        found = parse_flag(text)
        if found is None:
            raise UsageError("write true or false")
        return found


def number_of(name: str, text: str | None, largest: int = 1 << 62) -> int | None:
    """The number that an option gives, if it is given; raises UsageError if it is none."""
    if text is None:
        return None
    if not text.isdecimal() or not 1 <= int(text) <= largest:
        raise UsageError(f"option {name}: {text!r} is not a number from 1 to {largest}")
    return int(text)


def _columns(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    names = [it.strip() for it in text.split(",")]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"option columns: {name!r} is named twice")
    return tuple(names)


def _where(name: str, text: str | None, patterns: Patterns) -> Where | None:
    """Understand `earliest`, `latest`, positions as JSON, milliseconds since 1970, or a date."""
    if text is None:
        return None
    word = text.strip()
    if word.lower() in (EARLIEST, LATEST):
        return Where(word.lower())
    if word.startswith("{"):
        with option(name):
            return Where(GIVEN, 0, _given(word, patterns))
    try:
        seconds = int(word) // 1000 if word.isdecimal() else _seconds(word)
    except ValueError:
        seconds = -1
    if not 0 <= seconds <= TIME_MAX:
        raise UsageError(
            f"option {name}: {word[:80]!r} is not earliest, latest, JSON, a date such as "
            "2026-11-16T12:00:00Z or milliseconds since 1970"
        )
    return Where(TIME, seconds)


def _seconds(text: str) -> int:
    found = datetime.fromisoformat(text)
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp())


def _given(text: str, patterns: Patterns) -> Vectors:
    """Positions by topic, or a whole offset such as Spark prints in its progress."""
    try:
        plain: Any = json.loads(text)
        whole = {"s", "sub", "v"} <= plain.keys()
        found = Offset.from_json(plain).vectors if whole else vectors_from_json(plain)
    except ValueError as error:
        raise UsageError(f"{error}; write {FORM}") from None
    for topic in found:
        if patterns.of(topic) is None:
            raise UsageError(
                f"{topic!r} is not subscribed to: {', '.join(patterns)} does not match"
            )
    return found


def _check_range(start: Where | None, end: Where | None) -> None:
    """Raise UsageError for a range that has no end, or begins where nothing can be yet."""
    if start is not None and start.time > time() + CLOCKS_SECONDS:
        raise UsageError("option startingOffsets: this time is in the future; write latest")
    if end is not None and end.kind == EARLIEST:
        raise UsageError("option endingOffsets: a range does not end at the earliest")
    if start is None or end is None:
        return
    late = start.kind == end.kind == TIME and end.time < start.time
    for topic, vector in start.vectors.items() if end.kind == GIVEN else ():
        ends = end.vectors.get(topic, {})
        late |= any(ends.get(it, mark).next < mark.next for it, mark in vector.items())
    if late:
        raise UsageError("option endingOffsets: this is before startingOffsets")
