"""What a task does: reads its ranges from the network and hands Arrow batches to Spark."""

import logging
from collections.abc import Generator, Sequence
from contextlib import closing

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from planaria.network.context import Context
from planaria.spark.source.fetch import Condition, DataLoss, absent, parts_of
from planaria.spark.source.offsets import Range
from planaria.spark.source.table import Rows, Table

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
) -> Generator[pa.RecordBatch, None, None]:
    """The publications of these ranges, in order.

    Raises DataLoss for numbers that are no longer kept, or says in the log that they are passed.
    """
    table, rows, size, found = Table(schema), 0, 0, list[Rows]()
    with closing(parts_of(context, ranges, condition)) as parts:
        for part in parts:
            _tell([it for it in part.expired if not it.unsure], fail=fail_on_data_loss)
            found.append(Rows(part.topic, part.slices))
            rows += found[-1].size
            size += sum(len(one.record.data) for one in part.slices)
            if rows >= BATCH_ROWS or size >= BATCH_BYTES:
                yield table.batch(found)
                rows, size, found = 0, 0, []
    if rows:
        yield table.batch(found)


def _tell(expired: Sequence[Range], *, fail: bool) -> None:
    if not expired:
        return
    lost = f"data loss: {absent(expired)} are no longer kept"
    if fail:
        raise DataLoss(f"{lost}; to go on without them set the option failOnDataLoss to false")
    log.warning("%s and are skipped", lost)
