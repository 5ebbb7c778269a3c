"""Spark's readers at the nodes of a `gate_lab`, without Spark."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from pyspark.sql.streaming.datasource import ReadAllAvailable

from gate_lab import TOPIC, Lab
from planaria.spark.datasource import PlanariaDataSource
from planaria.spark.source.batch import BatchReader
from planaria.spark.source.stream import StreamReader

T = TypeVar("T")
Row = dict[str, Any]

ALL = ReadAllAvailable()


def source(lab: Lab, *nodes: int, **options: Any) -> PlanariaDataSource:
    """The source with these nodes as servers."""
    servers = ",".join(lab.hosts[at].hello.addresses[0] for at in nodes or sorted(lab.alive))
    given = {"servers": servers, "insecure": "true", "subscribe": TOPIC, **options}
    return PlanariaDataSource({name: str(value) for name, value in given.items()})


def stream(lab: Lab, *nodes: int, **options: Any) -> StreamReader:
    found = source(lab, *nodes, **options)
    reader = found.streamReader(found.schema())
    assert isinstance(reader, StreamReader)
    return reader


def batch(lab: Lab, *nodes: int, **options: Any) -> BatchReader:
    found = source(lab, *nodes, **options)
    reader = found.reader(found.schema())
    assert isinstance(reader, BatchReader)
    return reader


def rows(reader: StreamReader | BatchReader, *between: Any) -> list[Row]:
    """The rows of a batch, task after task, as tasks read them."""
    tasks = reader.partitions(*between)
    return [row for task in tasks for one in reader.read(task) for row in one.to_pylist()]


async def apart(work: Callable[..., T], *given: Any, **named: Any) -> T:
    """Readers wait: nodes go on meanwhile."""
    return await asyncio.to_thread(work, *given, **named)


class Empty:
    """The offset before everything."""

    @staticmethod
    def of(reader: StreamReader) -> Any:
        return {"s": {}, "sub": reader.options.fingerprint, "v": 1}


def values(found: list[Row]) -> list[bytes]:
    return [row["value"] for row in found]


def follow(reader: StreamReader, start: Any, limit: Any = ALL) -> tuple[list[Row], Any]:
    end = reader.latestOffset(start, limit)
    return rows(reader, start, end), end
