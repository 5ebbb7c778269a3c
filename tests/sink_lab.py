"""Sinks that die at chosen moments, where Spark's workers find them; and a way to read back."""

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

import planaria
from planaria.network.client.errors import Unreachable
from planaria.spark.datasource import PlanariaDataSource
from planaria.spark.sink.writers import BatchWriter, StreamWriter
from process_lab import HEAL_SECONDS, PATIENCE, UpNetwork

if TYPE_CHECKING:
    import pyarrow as pa

GO_ON = ".go"


class Marked:
    """Knows a file that says that what is to happen once has happened."""

    marker = Path()


class DyingWorker(Marked, BatchWriter):
    """The first task that has staged something is killed; all others wait for `go on`."""

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> WriterCommitMessage:
        def mortal() -> "Iterator[pa.RecordBatch]":
            for batch in iterator:
                yield batch
                try:
                    self.marker.touch(exist_ok=False)
                except FileExistsError:
                    continue
                time.sleep(0.3)  # what was given meanwhile is on its way
                os.kill(os.getpid(), signal.SIGKILL)

        return super().write(mortal())


class PausingWorker(Marked, BatchWriter):
    """Tasks stop after their first rows until they are told to go on."""

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> WriterCommitMessage:
        def pausing() -> "Iterator[pa.RecordBatch]":
            for batch in iterator:
                yield batch
                self.marker.touch()
                end = time.monotonic() + PATIENCE
                while not self.marker.with_suffix(GO_ON).exists() and time.monotonic() < end:
                    time.sleep(0.05)

        return super().write(pausing())


class ForgettingWriter(Marked, BatchWriter):
    """Commits what nobody staged, too."""

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        for one in messages:
            one.staged += [it._replace(incarnation=b"S" + bytes(11)) for it in one.staged]  # type: ignore[union-attr]
        super().commit(messages)


class KillingWriter(Marked, StreamWriter):
    """Kills Java, and the driver with it, after its own commit and before Spark's, once."""

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        super().commit(messages, batchId)
        if batchId == 1 and not self.marker.exists():
            self.marker.write_text(f"batch {batchId} is committed\n")
            os.kill(_parent(os.getppid()), signal.SIGKILL)


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


class Faulty(PlanariaDataSource):
    """The sink with a fault, which the option `fault` names."""

    @classmethod
    def name(cls) -> str:
        return "faulty"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        options = dict(self.options)
        kind = {it.__name__: it for it in (DyingWorker, PausingWorker, ForgettingWriter)}
        chosen, marker = kind[options.pop("fault")], Path(options.pop("marker", ""))
        writer = chosen(options, schema, overwrite=overwrite)
        writer.marker = marker
        return writer

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        options = dict(self.options)
        marker = Path(options.pop("marker"))
        writer = KillingWriter(options, schema)
        writer.marker = marker
        return writer


def read_back(network: UpNetwork, topic: str, count: int, first: str = "n1") -> Counter[bytes]:
    """All payloads of a topic, as soon as there are so many, and what comes a little later."""

    async def read() -> Counter[bytes]:
        found, end = list[bytes](), time.monotonic() + HEAL_SECONDS
        while time.monotonic() < end:
            with suppress(Unreachable):  # a network that heals
                async with network.connect(first) as client:
                    found = await _all(client, topic)
                    if len(found) >= count:
                        await asyncio.sleep(1.0)
                        return Counter(await _all(client, topic))
            await asyncio.sleep(0.2)
        return Counter(found)

    return asyncio.run(read())


async def _all(client: planaria.Client, topic: str) -> list[bytes]:
    found = await client.read(topic, limit=1 << 20)
    return [event.payload for event in found.events]
