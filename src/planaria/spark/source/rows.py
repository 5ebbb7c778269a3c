"""What a task does: reads its ranges from the network and hands Arrow batches to Spark."""

import logging
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing

import pyarrow as pa
from msgspec.structs import replace
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from planaria.network.context import Context
from planaria.records.batches import Slice
from planaria.spark.source.fetch import Condition, DataLoss, absent, parts_of
from planaria.spark.source.offsets import Range
from planaria.spark.source.table import Rows, Table

BATCH_ROWS = 1 << 14  # in one Arrow batch
BATCH_BYTES = 8 << 20

log = logging.getLogger("planaria.spark")


class Task(InputPartition):
    """The ranges that one task reads, and the nodes that may be asked for them."""

    def __init__(self, ranges: tuple[Range, ...], servers: Iterable[str] = ()) -> None:
        super().__init__(ranges)
        self.servers = tuple(servers)

    def at(self, context: Context) -> Context:
        """The same network, with nodes that the driver has heard of."""
        return replace(context, servers=self.servers) if self.servers else context


def batches(
    context: Context,
    schema: StructType,
    ranges: Sequence[Range],
    condition: Condition,
    *,
    fail_on_data_loss: bool,
    verify: bool = True,
) -> Generator[pa.RecordBatch, None, None]:
    """The publications of these ranges, in order.

    Raises DataLoss for numbers that are no longer kept, or says in the log that they are passed.
    """
    table, rows, size, found = Table(schema), 0, 0, list[Rows]()
    with closing(parts_of(context, ranges, condition, verify=verify)) as parts:
        for part in parts:
            _tell([it for it in part.expired if not it.unsure], fail=fail_on_data_loss)
            found.append(Rows(part.topic, part.slices))
            rows += found[-1].size
            size += sum(_bytes(one) for one in part.slices)
            if rows >= BATCH_ROWS or size >= BATCH_BYTES:
                yield table.batch(found)
                rows, size, found = 0, 0, []
    if rows:
        yield table.batch(found)


def _bytes(part: Slice) -> int:
    """About what it has of its record: of one a condition may leave many small parts."""
    return len(part.record.data) * (part.hi - part.lo) // part.record.count


def _tell(expired: Sequence[Range], *, fail: bool) -> None:
    if not expired:
        return
    lost = f"data loss: {absent(expired)} are no longer kept"
    if fail:
        raise DataLoss(f"{lost}; to go on without them set the option failOnDataLoss to false")
    log.warning("%s and are skipped", lost)
