"""The writers that Spark calls: tasks stage rows, the driver's side settles the batch."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from planaria.core.errors import PlanariaError, UsageError
from planaria.network.context import Context
from planaria.spark.sink.options import WriteOptions, check_columns
from planaria.spark.source.network import resolved

if TYPE_CHECKING:
    import pyarrow as pa

    from planaria.network.client.batches import Numbering, Staged
    from planaria.network.client.client import Client

WARNED_MAX = 1024  # queries remembered as told; then all may be told again
PATIENCE_SECONDS = 60.0  # for which a task looks for another node when one is lost
QUERY, BATCH = "sql.streaming.queryId", "streaming.sql.batchId"  # properties that Spark sets

T = TypeVar("T")

log = logging.getLogger("planaria.spark")

_warned: set[str] = set()  # queries of this process that were told of too few copies
_numbering: "Numbering | None" = None  # of this process: Spark uses one for all commits of a query


@dataclass
class Written(WriterCommitMessage):
    """What one task has staged, and for which query."""

    query: str
    staged: "list[Staged]"


class Sink:
    """What both writers share: where rows go, and as whom."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        parsed = WriteOptions.parse(options)
        check_columns(schema, parsed.topic)
        self.topic, self.copies = parsed.topic, parsed.copies
        self.context: Context = resolved(parsed.network)

    def stage(
        self, query: str, batch: int | str, iterator: "Iterator[pa.RecordBatch]"
    ) -> "list[Staged]":
        """Have members hold rows that nobody sees yet."""
        return self._at_nodes(query, batch, lambda client: self._stage(client, iterator))

    def settle(
        self,
        query: str,
        batch: int,
        messages: Sequence[WriterCommitMessage | None],
        numbering: "Numbering",
    ) -> None:
        """Publish all that was staged for a batch, unless that was done before."""
        from planaria.network.client.batches import commit

        staged = [it for one in messages if isinstance(one, Written) for it in one.staged]
        held: dict[str, int] = {}

        async def work(client: "Client") -> bool:
            return await commit(
                client, numbering, query, batch, staged, copies=self.copies, held=held
            )

        if staged:
            self._at_nodes(query, batch, work)
            self._tell(query, batch, held)

    def _tell(self, query: str, batch: int, held: Mapping[str, int]) -> None:
        """Warn, once for a query, if fewer members than wanted hold a topic's rows."""
        topic = min(held, key=lambda it: (held[it], it), default=None)
        if topic is None or held[topic] >= self.copies or query in _warned:
            return
        if len(_warned) >= WARNED_MAX:
            _warned.clear()
        _warned.add(query)
        log.warning(
            "query %s, batch %d: %d of %d copies on %s: it has too few members, which are nodes "
            "that serve a subscriber; said once for a query",
            query, batch, held[topic], self.copies, topic,
        )  # fmt: skip

    async def _stage(
        self, client: "Client", iterator: "Iterator[pa.RecordBatch]"
    ) -> "list[Staged]":
        from planaria.network.client.batches import Stager
        from planaria.spark.sink.sealing import by_topic, records

        stager = Stager(client, self.copies)
        # Rows come when Spark has them: meanwhile this client goes on telling that it lives.
        while (batch := await asyncio.to_thread(next, iterator, None)) is not None:
            for topic, rows in by_topic(batch, self.topic):
                for sealing in records(rows):
                    await stager.put(topic, sealing)
        return await stager.finish()

    def _at_nodes(
        self, query: str, batch: int | str, work: "Callable[[Client], Awaitable[T]]"
    ) -> T:
        """Do something as the publisher of a query; what goes wrong names the batch."""
        from planaria.network.client.access import Access, shown
        from planaria.network.client.batches import named
        from planaria.network.client.client import Client
        from planaria.network.client.servers import Servers
        from planaria.network.loop import run

        async def main() -> T:
            name = None if self.context.credentials else f"spark {query}"
            access = Access(*shown(self.context, name), PATIENCE_SECONDS)
            async with Client(Servers(self.context.servers), access) as client:
                return await work(client)

        try:
            return run(main())
        except PlanariaError as error:
            raise named(query, batch, error) from error


class StreamWriter(Sink, DataSourceStreamArrowWriter):
    """Publishes the batches of a streaming query."""

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> WriterCommitMessage:
        """Stage the rows of one task."""
        query, batch = _property(QUERY), _property(BATCH)
        return Written(query, self.stage(query, batch, iterator))

    def commit(
        self,
        messages: Sequence[WriterCommitMessage | None],
        batchId: int,  # noqa: N803
    ) -> None:
        """Publish the batch."""
        queries = [one.query for one in messages if isinstance(one, Written)]
        if queries:
            self.settle(queries[0], batchId, messages, _numbering_of_this_process())

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Leave what was staged to expire."""


class BatchWriter(Sink, DataSourceArrowWriter):
    """Publishes the rows of a batch query, as the one batch that it has."""

    def __init__(self, options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> None:
        super().__init__(options, schema)
        if overwrite:
            raise UsageError("what is published stays published: use mode('append')")
        self.query = str(uuid4())

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> WriterCommitMessage:
        """Stage the rows of one task."""
        return Written(self.query, self.stage(self.query, 0, iterator))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Publish all."""
        from planaria.network.client.batches import Numbering

        self.settle(self.query, 0, messages, Numbering())

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Leave what was staged to expire."""


def _numbering_of_this_process() -> "Numbering":
    from planaria.network.client.batches import Numbering

    global _numbering
    _numbering = _numbering or Numbering()
    return _numbering


def _property(name: str) -> str:
    """What Spark says of the task that this process runs."""
    from pyspark import TaskContext

    context: Any = TaskContext.get()
    found = None if context is None else context.getLocalProperty(name)
    if not found:
        raise UsageError(f"Spark does not say {name}: is this Spark 4.1 or later?")
    return str(found)
