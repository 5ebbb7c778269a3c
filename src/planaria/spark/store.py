"""A sweep's directory, on any filesystem that pyarrow knows (local, S3, HDFS, ...).

    DIR/sweep.json             which experiment, by which version of the code
    DIR/summary/BATCH.parquet  a row per cell of a batch; written last: with it the batch is done
    DIR/TABLE/BATCH.parquet    what else the cells of the batch gave
    DIR/running/CELL           a cell is under way in a batch whose worker died before

Files get their names when they are whole. What another process left under a hidden name, and
tables of a batch without a summary, are nobody's results and never read.
"""

import json
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow
from pyarrow import fs, parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from planaria import __version__
from planaria.core.errors import UsageError
from planaria.spark.imports import imported_files
from planaria.spark.sessions import PACKAGE

SUMMARY = "summary"
RUNNING = "running"
MANIFEST = "sweep.json"
LAYOUT = 1


def code_version(sources: Iterable[Path] = (), modules: Iterable[str] = ()) -> str:
    """Changes with every line that can change a result of `modules`, and with these files.

    What `modules` do not import cannot: a page about results, say, or the command line. Without
    `modules` the whole package counts, the command line excepted.
    """
    digest, files = blake2b(digest_size=6), [*sources]
    programs = [path for path in files if path.suffix == ".py"]
    named = [*modules]
    ours = imported_files([*named, *programs], PACKAGE) if named else _whole_package()
    for path in ours:
        digest.update(f"{path.relative_to(PACKAGE).as_posix()}\n".encode() + path.read_bytes())
    for path in files:
        digest.update(path.read_bytes())
    return f"{__version__}+{digest.hexdigest()}"


def _whole_package() -> list[Path]:
    files = sorted(PACKAGE.rglob("*.py"))
    return [path for path in files if path.relative_to(PACKAGE).parts[0] != "cli"]


class Store:
    """The directory `out`, by path or URL; workers make their own from the same text."""

    def __init__(self, out: str) -> None:
        self.out = out

    @property
    def shown(self) -> str:
        """The place as people may see it: a URL can hold a key and a secret."""
        return re.sub(r"(?<=://)[^/@]*@", "", self._split()[0])

    def below(self, name: str) -> str:
        """The path or URL of a directory in this one."""
        place, options = self._split()
        return f"{place.rstrip('/')}/{name}{options}"

    def _split(self) -> tuple[str, str]:
        if "://" not in self.out:
            return self.out, ""
        place, question, options = self.out.partition("?")
        return place, question + options

    @cached_property
    def _place(self) -> tuple[Any, str]:
        if "://" not in self.out:
            return fs.LocalFileSystem(), str(Path(self.out).absolute())
        try:
            filesystem, root = fs.FileSystem.from_uri(self.out)
        except (OSError, ValueError) as error:
            # It is no proper URL, so a secret may hold any sign, and pyarrow repeats it all.
            place = re.sub(r"(?<=://).*@", "", self.out).partition("?")[0]
            reason = _reason(error).replace(self.out, place)
            raise UsageError(f"cannot use {place}: {reason}") from None
        return filesystem, root

    def __getstate__(self) -> dict[str, str]:
        return {"out": self.out}

    def claim(self, experiment: str, version: str) -> None:
        """Make the directory one of this experiment and version, or `UsageError` if it is not."""
        filesystem, root = self._place
        mine = {"layout": LAYOUT, "experiment": experiment, "code": version}
        try:
            with filesystem.open_input_stream(f"{root}/{MANIFEST}") as source:
                theirs = json.loads(source.read())
        except FileNotFoundError:
            if self._entries(""):
                raise UsageError(
                    f"{self.shown} is not empty and holds no sweep: name another"
                ) from None
            self.write(MANIFEST, json.dumps(mine).encode())
            return
        except (OSError, ValueError) as error:
            raise UsageError(f"cannot read {self.shown}/{MANIFEST}: {_reason(error)}") from None
        for name, value in mine.items():
            found = theirs.get(name) if isinstance(theirs, dict) else None
            if found != value:
                raise UsageError(
                    f"{self.shown} holds results of {name} {found!r}, this is {value!r}: "
                    "name another directory, or delete that one"
                )

    def write(self, name: str, content: bytes | pyarrow.Table) -> None:
        """Put a file there, whole or not at all."""
        filesystem, root = self._place
        directory, _, file = f"{root}/{name}".rpartition("/")
        part = f"{directory}/.{file}.{uuid4().hex}.part"
        try:
            filesystem.create_dir(directory, recursive=True)
            try:
                with filesystem.open_output_stream(part) as sink:
                    if isinstance(content, bytes):
                        sink.write(content)
                    else:
                        parquet.write_table(content, sink, compression="zstd")
                filesystem.move(part, f"{root}/{name}")
            except BaseException:
                if filesystem.get_file_info(part).type != fs.FileType.NotFound:
                    filesystem.delete_file(part)
                raise
        except OSError as error:
            raise UsageError(
                f"cannot write {self.shown}/{name}: {_reason(error)}; "
                "make room there, or choose another --out"
            ) from None

    def mark(self, cell: str) -> None:
        """Say that `cell` begins: if its worker dies now, that is known."""
        self.write(f"{RUNNING}/{cell}", b"")

    def unmark(self, cell: str) -> None:
        """Say that `cell` has ended."""
        filesystem, root = self._place
        filesystem.delete_file(f"{root}/{RUNNING}/{cell}")

    def marked(self) -> list[str]:
        """The cells that began and did not end."""
        return self._entries(RUNNING)

    def batches(self) -> list[str]:
        """The names of all batches that are done."""
        return self._entries(SUMMARY)

    def column(self, batch: str, name: str) -> list[Any]:
        """One column of the summary of a batch."""
        table = self._read(f"{SUMMARY}/{batch}", [name])
        return list(table[name].to_pylist())

    def table(self, spark: SparkSession, name: str, schema: pyarrow.Schema) -> DataFrame:
        """All rows of a table, of batches that are done, read by the workers."""
        there = self._entries(name)
        files = [f"{name}/{batch}" for batch in self.batches() if batch in there]
        parts = max(1, min(len(files), spark.sparkContext.defaultParallelism))

        def read(numbers: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
            for batch in numbers:
                for number in batch.column(0).to_pylist():
                    yield from self._read(files[number], None).cast(schema).to_batches()

        numbers = spark.range(0, len(files), 1, parts)
        return numbers.mapInArrow(read, from_arrow_schema(schema))

    def schema(self, name: str) -> pyarrow.Schema:
        """The columns of a table, by the first of its files."""
        done = self.batches()
        for batch in self._entries(name):
            if batch in done:
                return self._read(f"{name}/{batch}", None).schema
        raise UsageError(f"{self.shown} has no table {name!r}")

    def _read(self, name: str, columns: list[str] | None) -> pyarrow.Table:
        filesystem, root = self._place
        try:
            with filesystem.open_input_file(f"{root}/{name}") as source:
                return parquet.ParquetFile(source).read(columns=columns)
        except (OSError, ValueError) as error:
            raise UsageError(
                f"cannot read {self.shown}/{name}: {_reason(error)}; delete it and run again"
            ) from None

    def _entries(self, directory: str) -> list[str]:
        """The visible files and directories in one of ours, sorted."""
        filesystem, root = self._place
        selector = fs.FileSelector(f"{root}/{directory}".rstrip("/"), allow_not_found=True)
        try:
            found = filesystem.get_file_info(selector)
        except OSError as error:
            raise UsageError(f"cannot read {self.shown}: {_reason(error)}") from None
        return sorted(info.base_name for info in found if not info.base_name.startswith("."))


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error).splitlines()[0]
