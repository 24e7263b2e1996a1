"""`format("strom")`: topics as Spark reads and writes them.

Options, columns and their meaning are those of Spark's own Kafka connector, so that a job changes
one word.
"""

from collections.abc import Mapping

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from strom.spark.options import ReadOptions

COLUMNS = (
    "key binary, value binary, topic string, partition int, offset bigint, "
    "timestamp timestamp, timestampType int"
)
HEADERS = "headers array<struct<key: string, value: binary>>"


class StromSource(DataSource):
    """Topics of a Kafka cluster."""

    @classmethod
    def name(cls) -> str:
        """Return the word for `format`."""
        return "strom"

    def schema(self) -> str:
        """Return the columns; the headers are there when they are asked for."""
        given = _lower(self.options)
        with_headers = given.get("includeheaders", "false").strip().lower() == "true"
        return f"{COLUMNS}, {HEADERS}" if with_headers else COLUMNS

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch."""
        from strom.spark.reader import BatchReader

        return BatchReader(ReadOptions.parse(self.options, streaming=False))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return the reader of a stream."""
        from strom.spark.reader import StreamReader

        return StreamReader(ReadOptions.parse(self.options, streaming=True))


def _lower(options: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in options.items()}
