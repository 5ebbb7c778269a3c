"""What a task does: reads its ranges from the network and hands Arrow batches to Spark."""

import logging
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from planaria.network.client.channel import Access
from planaria.network.client.client import shown
from planaria.network.client.servers import Servers
from planaria.network.context import Context
from planaria.spark.source.fetch import Condition, DataLoss, Fetcher, absent
from planaria.spark.source.offsets import Range
from planaria.spark.source.table import Rows, Table
from planaria.sync import Loop

BATCH_ROWS = 1 << 14  # in one Arrow batch
BATCH_BYTES = 8 << 20

log = logging.getLogger("planaria.spark")


class Task(InputPartition):
    """The ranges that one task reads."""

    def __init__(self, ranges: tuple[Range, ...]) -> None:
        super().__init__(ranges)


def batches(
    context: Context,
    schema: StructType,
    ranges: Sequence[Range],
    condition: Condition,
    *,
    fail_on_data_loss: bool,
) -> Iterator[pa.RecordBatch]:
    """The publications of these ranges, in order.

    Raises DataLoss for numbers that are no longer kept, or says in the log that they are passed.
    """
    table, rows, size, found = Table(schema), 0, 0, list[Rows]()
    loop = Loop()
    try:
        access = Access(*shown(context, None))
        fetcher = loop.run(_made(context, access, condition))
        parts = fetcher.parts(ranges)
        try:
            while (part := loop.run(anext(parts, None))) is not None:
                _tell([it for it in part.expired if not it.unsure], fail=fail_on_data_loss)
                found.append(Rows(part.topic, part.slices))
                rows += found[-1].size
                size += sum(len(one.record.data) for one in part.slices)
                if rows >= BATCH_ROWS or size >= BATCH_BYTES:
                    yield table.batch(found)
                    rows, size, found = 0, 0, []
            if rows:
                yield table.batch(found)
        finally:
            loop.run(parts.aclose())
    finally:
        loop.stop()


async def _made(context: Context, access: Access, condition: Condition) -> Fetcher:
    return Fetcher(Servers(context.servers), access, condition)


def _tell(expired: Sequence[Range], *, fail: bool) -> None:
    if not expired:
        return
    lost = f"data loss: {absent(expired)} are no longer kept"
    if fail:
        raise DataLoss(f"{lost}; to go on without them set the option failOnDataLoss to false")
    log.warning("%s and are skipped", lost)
