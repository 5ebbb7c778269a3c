"""What happened in a run, as rows: one schema for simulated and for live runs, in Parquet.

| column | type | meaning |
|---|---|---|
| run | string | the run the row belongs to: the same for the same command and version |
| tick | int64 | when: ticks of a simulation (100 are one interval), milliseconds of a live run |
| node | int64 | where it happened; -1: nowhere, the environment did it |
| kind | string | one of `engine.KINDS` |
| src, dst | int64 | sender and receiver of a message; null for other kinds |
| message_type | string | tag of the message; for other kinds the command, effect or fault; for a
  `verdict` the invariants that are broken at the end of an interval, or `legitimate` |
| message_id | int64 | number of the message in its run; copies share it; null for other kinds |
| cause_id | int64 | the message whose handling led to this; 0: a timeout, a command, a fault |
| bytes | int64 | size of the message on the wire; null for other kinds |
| topic | string | that the message is about; null if it names none, and for other kinds |

Rows are in the order in which things happened. `cause_id` makes them a happened-before graph. A
fault that rewrites channels may deliver something else under the number of what was sent.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Self

from msgspec import Struct, to_builtins

from planaria.core.codec import to_wire
from planaria.core.errors import CapacityExceeded, InvariantViolation, UsageError
from planaria.core.ids import NodeId, stable_hash
from planaria.core.message import Message, tag_of, topic_of
from planaria.core.trace import Row
from planaria.simulator.engine import KINDS, MESSAGE_KINDS, Entry

LEVELS = ("off", "counters", "messages", "everything")
ROWS_PER_GROUP = 1 << 16  # rows held in memory before they are written as one row group
SCHEMA_VERSION = "2"
COLUMNS: Mapping[str, str] = {
    "run": "string",
    "tick": "int64",
    "node": "int64",
    "kind": "string",
    "src": "int64",
    "dst": "int64",
    "message_type": "string",
    "message_id": "int64",
    "cause_id": "int64",
    "bytes": "int64",
    "topic": "string",
}


class Count(Struct):
    """What became of the messages of one type; `bytes` are those sent."""

    sent: int = 0
    delivered: int = 0
    dropped: int = 0
    bytes: int = 0


class Counters:
    """Counts messages by type; costs no memory however long the run."""

    kinds = MESSAGE_KINDS

    def __init__(self) -> None:
        self.by_type: dict[str, Count] = {}

    def record(self, tick: int, kind: str, node: NodeId, entry: Entry, effect: object) -> None:
        """Count one message."""
        assert entry.message is not None  # kinds
        self.count(kind, tag_of(entry.message), self.size(entry.message))

    def count(self, kind: str, tag: str, size: int | None) -> None:
        """Enter one event of `kind` into the books."""
        count = self.by_type.get(tag)
        if count is None:
            count = self.by_type[tag] = Count()
        if kind == "send":
            count.sent += 1
            count.bytes += size or 0
        elif kind == "deliver":
            count.delivered += 1
        else:
            count.dropped += 1

    def size(self, message: Message) -> int | None:
        """Bytes of a message on the wire; None for one that no frame can carry."""
        try:
            return len(to_wire(message))
        except CapacityExceeded:
            return None  # to watch a run must not end it

    def totals(self) -> dict[str, dict[str, int]]:
        """The books, by type."""
        return {tag: to_builtins(self.by_type[tag]) for tag in sorted(self.by_type)}


class Recorder:
    """Writes a trace at one of the levels above `counters`, row group by row group.

    The file appears under its name when the recorder is closed, whole or not at all. A run that
    broke a promise is closed too: its trace is the evidence.
    """

    def __init__(self, path: Path, level: str, about: Mapping[str, str]) -> None:
        self.counters = Counters()
        self.kinds = KINDS if level == "everything" else MESSAGE_KINDS
        self.rows = 0
        self._path, self._part = path, path.with_name(f".{path.name}.{os.getpid()}.part")
        self._keeps_rows = level != "counters"
        self._run = f"{stable_hash(*about.values(), bits=64):016x}"
        self._pending: list[Row] = []
        self._more: dict[str, Any] = {}
        metadata = {"schema": SCHEMA_VERSION, "run": self._run, "level": level, **about}
        parquet, self._schema = _parquet(), _schema()
        try:
            self._writer = parquet.ParquetWriter(
                self._part, self._schema.with_metadata(_prefixed(metadata)), compression="zstd"
            )
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror or error}") from None

    def record(self, tick: int, kind: str, node: NodeId, entry: Entry, effect: object) -> None:
        """Keep one row."""
        if kind in MESSAGE_KINDS and entry.message is not None:
            tag, size = tag_of(entry.message), self.counters.size(entry.message)
            self.counters.count(kind, tag, size)
            if not self._keeps_rows:
                return
            ends, topic = (entry.source, entry.target), topic_of(entry.message)
            row = Row(tick, node, kind, *ends, tag, entry.number, entry.cause, size, topic)
        else:
            row = Row(tick, node, kind, None, None, _named(effect), None, entry.number, None)
        self.keep(row)

    def keep(self, row: Row) -> None:
        """Keep a row that was made elsewhere, by a live node, say."""
        self._pending.append(row)
        if len(self._pending) == ROWS_PER_GROUP:
            self._flush()

    def tell(self, name: str, value: Any) -> None:
        """Say something more about the run, beside what was known when it began."""
        self._more[name] = value

    def close(self) -> None:
        """Write what is left, and the counters; only now the file exists."""
        self._flush()
        more = {"counters": self.counters.totals(), **self._more}
        self._writer.add_key_value_metadata(_prefixed(more))
        self._writer.close()
        try:
            self._part.replace(self._path)
        except OSError as error:
            self._part.unlink(missing_ok=True)
            raise UsageError(f"cannot write {self._path}: {error.strerror or error}") from None

    def discard(self) -> None:
        """Leave nothing behind."""
        self._writer.close()
        self._part.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None or isinstance(error, InvariantViolation):
            self.close()
        else:
            self.discard()

    def _flush(self) -> None:
        if not self._pending:
            return
        import pyarrow

        self.rows += len(self._pending)
        columns = [[self._run] * len(self._pending), *map(list, zip(*self._pending, strict=True))]
        arrays = [
            pyarrow.array(column, field.type)
            for column, field in zip(columns, self._schema, strict=True)
        ]
        self._writer.write_table(pyarrow.Table.from_arrays(arrays, schema=self._schema))
        self._pending.clear()


class Trace:
    """A trace in a file, read piece by piece."""

    def __init__(self, path: Path) -> None:
        parquet = _parquet()
        try:
            self._file = parquet.ParquetFile(path)
        except (OSError, ValueError) as error:  # pyarrow's ArrowInvalid is a ValueError
            reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
            raise UsageError(f"cannot read {path}: {reason}") from None
        missing = [name for name in COLUMNS if name not in self._file.schema_arrow.names]
        if missing:
            raise UsageError(
                f"{path} is not a trace of schema {SCHEMA_VERSION}: it lacks {', '.join(missing)}"
            )

    @property
    def about(self) -> dict[str, str]:
        """Seed, version, replay command, counters and so on."""
        metadata = self._file.metadata.metadata or {}
        prefix = b"planaria."
        return {
            name.removeprefix(prefix).decode(): value.decode()
            for name, value in metadata.items()
            if name.startswith(prefix)
        }

    def rows(self) -> Iterator[Row]:
        """All rows in order, one row group in memory at a time."""
        for group in range(self._file.num_row_groups):
            table = self._file.read_row_group(group, columns=list(Row._fields))
            columns: Iterable[list[Any]] = (table[name].to_pylist() for name in Row._fields)
            yield from map(Row._make, zip(*columns, strict=True))


def _named(effect: object) -> str | None:
    """A fault is its own text; a command or effect is known by its class."""
    return effect if effect is None or isinstance(effect, str) else type(effect).__name__


def _prefixed(metadata: Mapping[str, Any]) -> dict[str, str]:
    return {
        f"planaria.{name}": value if isinstance(value, str) else json.dumps(value)
        for name, value in metadata.items()
    }


def _schema() -> Any:
    import pyarrow

    nullable = ("src", "dst", "message_type", "message_id", "bytes", "topic")
    return pyarrow.schema(
        pyarrow.field(name, kind, nullable=name in nullable) for name, kind in COLUMNS.items()
    )


def _parquet() -> ModuleType:
    """pyarrow is large and not for everybody: it comes with the extra `trace`."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise UsageError("traces need pyarrow: pip install 'planaria[trace]'") from None
    return pyarrow.parquet  # type: ignore[no-any-return]
