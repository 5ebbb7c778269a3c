"""The format `planaria` of Spark: topics of a live network to read from and to write to.

    spark.dataSource.register(PlanariaDataSource)
    spark.readStream.format("planaria").option("servers", ...).option("subscribe", "weather/#")

Spark starts several processes around each query, and each imports this module: it stays light.
"""

try:
    from pyspark.sql.datasource import (
        DataSource,
        DataSourceArrowWriter,
        DataSourceReader,
        DataSourceStreamArrowWriter,
        DataSourceStreamReader,
    )
    from pyspark.sql.types import StructType
except ImportError as error:
    raise ImportError(f"{error}; this needs pip install 'planaria[spark]'") from None


class PlanariaDataSource(DataSource):
    """Topics as tables; register it with `spark.dataSource.register(PlanariaDataSource)`."""

    @classmethod
    def name(cls) -> str:
        """What `format` calls it."""
        return "planaria"

    def schema(self) -> StructType:
        """The columns of what is read."""
        from planaria.spark.source.options import ReadOptions
        from planaria.spark.source.table import schema_of

        return schema_of(ReadOptions.parse(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Read a range of topics, once."""
        from planaria.spark.source.batch import BatchReader
        from planaria.spark.source.options import ReadOptions

        return BatchReader(ReadOptions.parse(self.options), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Read topics on and on, by offsets."""
        from planaria.core.errors import PlanariaError
        from planaria.spark.source.options import ReadOptions
        from planaria.spark.source.stream import Refused, StreamReader

        try:
            return StreamReader(ReadOptions.parse(self.options), schema)
        except PlanariaError as error:
            return Refused(error)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """Publish rows, once and all together."""
        from planaria.spark.sink.writers import BatchWriter

        return BatchWriter(self.options, schema, overwrite=overwrite)

    def streamWriter(  # noqa: N802
        self, schema: StructType, overwrite: bool
    ) -> DataSourceStreamArrowWriter:
        """Publish the rows of each batch, once and all together."""
        from planaria.spark.sink.writers import StreamWriter

        return StreamWriter(self.options, schema)
