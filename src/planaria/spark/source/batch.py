"""The batch side: a range of topics, fixed when the query is planned, read by tasks."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from planaria.core.errors import UsageError
from planaria.spark.source.network import resolved
from planaria.spark.source.offsets import Vectors, between, merged
from planaria.spark.source.options import EARLIEST, GIVEN, LATEST, ReadOptions, Where
from planaria.spark.source.plan import divide, tasks_for
from planaria.spark.source.push import Pushed
from planaria.spark.source.rows import Task, batches
from planaria.spark.source.table import check_given

if TYPE_CHECKING:
    import pyarrow as pa

    from planaria.spark.source.overview import Overview


class PushFilters:
    """`pushFilters` of a reader that works whether the session pushes filters or not.

    Spark refuses a reader that implements it where `spark.sql.python.filterPushdown.enabled` is
    false, which it is by default: so this looks like the one that every reader has.
    """

    __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, pushed: Pushed) -> None:
        self.pushed = pushed

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        """Leave out at the nodes what these filters would drop; Spark still judges every row."""
        self.pushed.take(filters)
        return filters


class BatchReader(DataSourceReader):
    """Reads a subscription from one place to another, by default all of it."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        check_given(schema, options)
        if options.starting is not None and options.starting.kind == LATEST:
            raise UsageError("option startingOffsets: a batch does not begin at the latest")
        self.options, self.schema = options, schema
        self.context = resolved(options.network)
        self.pushed = Pushed(schema)
        self.pushFilters = PushFilters(self.pushed)  # type: ignore[method-assign]

    def partitions(self) -> Sequence[InputPartition]:
        """The tasks: what is there now, and was asked for."""
        from planaria.spark.source.overview import Overview

        overview = Overview(self.context, self.options.patterns)
        try:
            start = _start(overview, self.options.starting or Where(EARLIEST))
            end = _end(overview, self.options.ending or Where(LATEST), start)
            lows = {topic: one.lows for topic, one in overview.seen.items()}
            servers = list(overview.servers)
        finally:
            overview.close()
        ranges = self.pushed.ranges(between(start, merged(start, end)))
        works = divide(ranges, tasks_for(ranges, lows, self.options.partitions), lows)
        return [Task(work.ranges, servers) for work in works]

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        """The rows of one task; Spark gives one without ranges where no task was planned."""
        task = partition if isinstance(partition, Task) else Task(())
        condition = self.pushed.condition(self.options.filter)
        return batches(
            task.at(self.context),
            self.schema,
            task.value,
            condition,
            fail_on_data_loss=self.options.fail_on_data_loss,
            verify=self.options.verify,
        )


def _start(overview: "Overview", where: Where) -> Vectors:
    if where.kind == EARLIEST:
        return {}
    return where.vectors if where.kind == GIVEN else overview.at(where)


def _end(overview: "Overview", where: Where, start: Vectors) -> Vectors:
    """Where a range ends. What was given is taken as it is: if it is not there, the read fails."""
    if where.kind == GIVEN:
        overview.fresh()
        return where.vectors
    return overview.complete(start, None if where.kind == LATEST else overview.at(where))
