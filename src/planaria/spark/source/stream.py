"""The streaming side: offsets beside the driver, ranges in tasks."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from planaria.core.errors import PlanariaError, UsageError
from planaria.spark.source.fetch import Condition
from planaria.spark.source.network import resolved
from planaria.spark.source.offsets import Offset, Vectors, between, mine
from planaria.spark.source.options import EARLIEST, GIVEN, LATEST, ReadOptions, Where
from planaria.spark.source.plan import advance, divide, tasks_for
from planaria.spark.source.rows import Task, batches
from planaria.spark.source.table import check_given

if TYPE_CHECKING:
    import pyarrow as pa

    from planaria.spark.source.overview import Overview

Plain = dict[str, Any]  # an offset as Spark keeps it


class Refused(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Raises what is wrong with a query at the first question about it.

    A reader that cannot be made ends with a mistake of PySpark's own, which hides what was said.
    """

    def __init__(self, error: PlanariaError) -> None:
        self.error = error

    def initialOffset(self) -> Plain:  # noqa: N802
        """Raise it."""
        raise self.error

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Raise it."""
        raise self.error

    def latestOffset(self, start: Plain, limit: ReadLimit) -> Plain:  # noqa: N802
        """Raise it."""
        raise self.error

    def partitions(self, start: Plain, end: Plain) -> Sequence[InputPartition]:
        """Raise it: a query that goes on from its checkpoint may ask this first."""
        raise self.error

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        """Raise it."""
        raise self.error


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a subscription by offsets that any node understands."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        check_given(schema, options)
        if options.ending is not None:
            raise UsageError(
                "option endingOffsets: a stream has no end; use trigger(availableNow=True), or a "
                "batch"
            )
        self.options, self.schema = options, schema
        self.context = resolved(options.network)
        self._overview: Overview | None = None
        self._ends: Vectors | None = None  # of what a query reads that ends by itself,
        self._target: Vectors | None = None  # and of it what it can have
        self._began: Plain | None = None  # where this reader said that the query begins,
        self._pin: Plain | None = None  # and the same until Spark has it as the end of a batch

    def __getstate__(self) -> dict[str, Any]:
        """What tasks need; the connection stays beside the driver."""
        here = dict.fromkeys(("_overview", "_ends", "_target", "_began", "_pin"))
        return {**self.__dict__, **here}

    # Beside the driver, all in one process

    def initialOffset(self) -> Plain:  # noqa: N802
        """Where a query without a checkpoint begins; by default with what comes from now on.

        Spark asks again when it runs the first batch: the answer stays what it was.
        """
        if self._began is None:
            where = self.options.starting or Where(LATEST)
            self._began = self._offset(self._beginning(where))
            if where.kind not in (EARLIEST, GIVEN):
                self._pin = self._began
        return self._began

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """At most `maxRowsPerTrigger` rows a batch."""
        rows = self.options.rows_max
        return ReadAllAvailable() if rows is None else ReadMaxRows(rows)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Fix the end: all that any node has now."""
        self._ends = self.overview.at(Where(LATEST))

    def latestOffset(self, start: Plain, limit: ReadLimit) -> Plain:  # noqa: N802
        """How far the next batch goes; waits a little if there is nothing to read.

        Spark does not keep where a query began until a batch ends. A beginning that would be
        another after a restart is therefore the end of a first batch without rows.
        """
        offset = mine(start, self.options.patterns)
        if self._pin is not None and self._pin == start:
            self._pin = None
            return start
        if self._ends is not None and self._target is None:
            self._target = self.overview.complete(offset.vectors, self._ends)
        have = self._target
        if have is None:
            have = self.overview.available(self.overview.news(offset.vectors))
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        lows = {topic: seen.lows for topic, seen in self.overview.seen.items()}
        return self._offset(advance(offset.vectors, have, lows, rows))

    def partitions(self, start: Plain, end: Plain) -> Sequence[InputPartition]:
        """The tasks of a batch: what `end` has read and `start` has not.

        Its end is in Spark's log by now, also if the batch is one that an earlier run left.
        """
        self._pin = None
        patterns = self.options.patterns
        ranges = between(mine(start, patterns).vectors, mine(end, patterns).vectors)
        known = self._overview
        lows = {} if known is None else {topic: one.lows for topic, one in known.seen.items()}
        works = divide(ranges, tasks_for(ranges, lows, self.options.partitions), lows)
        servers = () if known is None else tuple(known.servers)
        return [Task(work.ranges, servers) for work in works]

    def commit(self, end: Plain) -> None:
        """Topics keep what they keep, whoever has read it."""

    def stop(self) -> None:
        """Hang up."""
        if self._overview is not None:
            self._overview.close()
            self._overview = None

    @property
    def overview(self) -> "Overview":
        """What the network has, by a connection that lasts as long as the query."""
        if self._overview is None:
            from planaria.spark.source.overview import Overview

            self._overview = Overview(self.context, self.options.patterns)
        return self._overview

    def _beginning(self, where: Where) -> Vectors:
        if where.kind == EARLIEST:
            return {}
        if where.kind == GIVEN:
            return where.vectors
        return self.overview.at(where)

    def _offset(self, vectors: Vectors) -> Plain:
        return Offset(self.options.fingerprint, vectors).to_json()

    # In tasks

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        """The rows of one task."""
        assert isinstance(partition, Task)
        condition = Condition(self.options.filter)
        return batches(
            partition.at(self.context),
            self.schema,
            partition.value,
            condition,
            fail_on_data_loss=self.options.fail_on_data_loss,
            verify=self.options.verify,
        )
