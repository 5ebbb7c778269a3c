"""Topics as Parquet files, and back: resumable, each publication exactly once.

    DIR/topic=weather%2Feurope/date=2026-11-16/000000-0.parquet
    DIR/_planaria/archive.json          what this archive is of
    DIR/_planaria/commits/000000.json   how far a batch goes, and its files
    DIR/_planaria/staged/               files of a batch that is not committed
    DIR/_planaria/lock                  is locked while somebody writes

A batch is written aside, committed by one small file, and then moved into place. Whoever is killed
in between leaves nothing behind that a reader of Parquet would see, or something that the next run
finishes. No Spark is needed; whatever reads partitioned Parquet can read it.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace
from pyarrow import parquet

from planaria.core.errors import PlanariaError, UsageError
from planaria.network.context import Context
from planaria.network.files import write_atomically
from planaria.records.arrow import to_arrow
from planaria.records.batches import Slice
from planaria.spark.source.fetch import Condition, DataLoss, absent, parts_of
from planaria.spark.source.offsets import Offset, Range, Vectors, between, fingerprint, mine
from planaria.spark.source.overview import Overview
from planaria.spark.source.plan import advance

BATCH_ROWS = 1 << 20  # in one commit
OPEN_MAX = 64  # files of one topic, by date, that are written at a time
NAME_BYTES_MAX = 255  # of a directory
NO_DATE = "__HIVE_DEFAULT_PARTITION__"  # that readers of Parquet take for null
INNER = "_planaria"  # readers of Parquet pass over names that begin so

_EPOCH = date(1970, 1, 1).toordinal()


class Commit(NamedTuple):
    """One batch: how far it goes, and its files with their rows, by path."""

    offset: dict[str, Any]
    files: dict[str, int]

    @property
    def rows(self) -> int:
        """How many publications it has."""
        return sum(self.files.values())


class Archive:
    """A directory with the publications of some topics."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._inner = directory / INNER
        self._commits = self._inner / "commits"
        self._staged = self._inner / "staged"

    @property
    def described(self) -> dict[str, Any]:
        """What it is of; raises UsageError if there is no archive."""
        try:
            found: dict[str, Any] = json.loads((self._inner / "archive.json").read_text())
            return found
        except FileNotFoundError:
            raise UsageError(f"{self.directory} is no archive") from None

    def commits(self) -> list[Commit]:
        """All batches, in order."""
        paths = sorted(self._commits.glob("*.json"))
        return [Commit(**json.loads(path.read_text())) for path in paths]

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Let nobody else write meanwhile; raises UsageError if somebody does."""
        self._inner.mkdir(parents=True, exist_ok=True)
        with (self._inner / "lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(f"{self.directory}: another run writes this archive") from None
            yield

    def open(self, patterns: Sequence[str]) -> None:
        """Prepare to write; finishes what the last run did not.

        Raises UsageError if it is an archive of something else.
        """
        for path in (self._commits, self._staged):
            path.mkdir(parents=True, exist_ok=True)
        described = self._inner / "archive.json"
        if not described.exists():
            text = {"id": os.urandom(12).hex(), "patterns": sorted(patterns), "v": 1}
            write_atomically(described, json.dumps(text))
        if self.described["patterns"] != sorted(patterns):
            of = ", ".join(self.described["patterns"])
            raise UsageError(f"{self.directory} is an archive of {of}: name another directory")
        for commit in self.commits()[-1:]:
            self._put_in_place(commit)
        for path in self._staged.rglob("*.parquet"):
            path.unlink()

    def add(self, number: int, offset: Offset, tables: Iterator[tuple[str, pa.Table]]) -> Commit:
        """Write a batch, commit it, and move it into place."""
        with _Files(self._staged, number) as files:
            for topic, table in tables:
                files.write(topic, table)
        commit = Commit(offset.to_json(), files.rows)
        write_atomically(self._commits / f"{number:06}.json", json.dumps(commit._asdict()))
        self._put_in_place(commit)
        return commit

    def _put_in_place(self, commit: Commit) -> None:
        """Move its files where readers see them; raises PlanariaError if one is nowhere."""
        for name in commit.files:
            staged, place = self._staged / name, self.directory / name
            if staged.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                staged.replace(place)
            elif not place.exists():
                raise PlanariaError(f"{place} is committed and is not there: was it deleted?")

    def tables(self, topic: str) -> Iterator[pa.RecordBatch]:
        """All publications of a topic, always in the same order."""
        part = f"{_directory(topic)}/"
        for commit in self.commits():
            for name in sorted(commit.files):
                if name.startswith(part):
                    with parquet.ParquetFile(self.directory / name) as file:
                        yield from file.iter_batches()

    def topics(self) -> list[str]:
        """The topics of which there is something."""
        names = {name.split("/")[0] for commit in self.commits() for name in commit.files}
        return sorted(unquote(name.removeprefix("topic=")) for name in names)


class _Files:
    """The files of one batch, one for each topic and date; complete on disk when the block ends."""

    def __init__(self, directory: Path, number: int) -> None:
        self.directory, self.number = directory, number
        self.rows: dict[str, int] = {}
        self._open: dict[str, parquet.ParquetWriter] = {}
        self._names: dict[str, str] = {}
        self._topic = ""

    def __enter__(self) -> "_Files":
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def write(self, topic: str, table: pa.Table) -> None:
        """Add publications of a topic."""
        if topic != self._topic:
            self._close()
            self._topic = topic
        name = _directory(topic)
        days = pc.cast(pc.cast(table.column("timestamp"), pa.date32()), pa.int32())
        for day in sorted(pc.unique(days).to_pylist()):
            part = table.filter(pc.equal(days, day))
            place = f"{name}/date={_date(day)}"
            if place not in self._open:
                if len(self._open) >= OPEN_MAX:
                    self._close()
                file = f"{place}/{self.number:06}-{len(self.rows)}.parquet"
                path = self.directory / file
                path.parent.mkdir(parents=True, exist_ok=True)
                self._open[place] = parquet.ParquetWriter(path, table.schema)
                self._names[place] = file
                self.rows[file] = 0
            self._open[place].write_table(part)
            self.rows[self._names[place]] += part.num_rows

    def _close(self) -> None:
        for place, writer in self._open.items():
            writer.close()
            with (self.directory / self._names[place]).open("rb") as file:
                os.fsync(file.fileno())
        self._open, self._names = {}, {}


def _directory(topic: str) -> str:
    """The directory of a topic; raises UsageError if no directory can have its name."""
    name = f"topic={quote(topic, safe='')}"
    if len(name) > NAME_BYTES_MAX:
        raise UsageError(
            f"topic {topic[:40]}... takes {len(name)} bytes as the name of a directory, which has "
            f"{NAME_BYTES_MAX} at most: archive others by their patterns"
        )
    return name


def _date(day: int) -> str:
    """The name of a day since 1970; publishers may give times that no calendar has."""
    try:
        return str(date.fromordinal(_EPOCH + day))
    except (ValueError, OverflowError):
        return NO_DATE


def archive(
    context: Context, patterns: Sequence[str], directory: Path, *, fail_on_data_loss: bool = True
) -> Iterator[Commit]:
    """Write all that there is now and was not written before, batch by batch.

    Raises DataLoss for what was promised and is no longer kept, or passes over it.
    """
    found = Archive(directory)
    with found.locked():
        found.open(patterns)
        done = found.commits()
        start: Vectors = mine(done[-1].offset, patterns).vectors if done else {}
        with closing(Overview(context, patterns)) as overview:
            target = overview.complete(start)
            lows = {topic: seen.lows for topic, seen in overview.seen.items()}
            context = replace(context, servers=tuple(overview.servers))
        number = len(done)
        while True:
            end = advance(start, target, lows, BATCH_ROWS)
            ranges = between(start, end)
            if not ranges:
                return
            tables = _tables(context, ranges, fail=fail_on_data_loss)
            yield found.add(number, Offset(fingerprint(patterns), end), tables)
            start, number = end, number + 1


def _tables(
    context: Context, ranges: Sequence[Range], *, fail: bool
) -> Iterator[tuple[str, pa.Table]]:
    with closing(parts_of(context, ranges, Condition())) as parts:
        for part in parts:
            lost = [it for it in part.expired if not it.unsure]
            if lost and fail:
                raise DataLoss(f"data loss: {absent(lost)} are no longer kept")
            if part.slices:
                yield part.topic, _table(part.slices)


def _table(slices: Sequence[Slice]) -> pa.Table:
    table = to_arrow(slices)
    at = table.schema.get_field_index("timestamp")
    return table.set_column(at, "timestamp", table.column(at).cast(pa.timestamp("us", tz="UTC")))
