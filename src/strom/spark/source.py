"""`format("strom")`: topics as Spark reads and writes them.

Options, columns and their meaning are those of Spark's own Kafka connector, so that a job changes
one word.
"""

from collections.abc import Mapping

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from strom.spark.failure import OptionError
from strom.spark.option_names import CONSUMER_SETTINGS, KAFKA, SOURCE_OPTIONS, WITHOUT_EFFECT
from strom.spark.options import ReadOptions
from strom.spark.write_options import PRODUCER_SETTINGS, SINK_OPTIONS, WriteOptions
from strom.spark.write_options import WITHOUT_EFFECT as WITHOUT_EFFECT_ON_WRITES

COLUMNS = (
    "key binary, value binary, topic string, partition int, offset bigint, "
    "timestamp timestamp, timestampType int"
)
HEADERS = "headers array<struct<key: string, value: binary>>"

_READING = frozenset(each.lower() for each in SOURCE_OPTIONS) | {
    f"{KAFKA}{each}" for each in (*CONSUMER_SETTINGS, *WITHOUT_EFFECT)
}
_WRITING = frozenset(each.lower() for each in SINK_OPTIONS) | {
    f"{KAFKA}{each}" for each in (*PRODUCER_SETTINGS, *WITHOUT_EFFECT_ON_WRITES)
}
#: A view has the options of reading and of writing; each side leaves alone what is the other's.
READING_ONLY = _READING - _WRITING
WRITING_ONLY = _WRITING - _READING


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

        return BatchReader(ReadOptions.parse(self.options, streaming=False, others=WRITING_ONLY))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return the reader of a stream."""
        from strom.spark.reader import StreamReader

        return StreamReader(ReadOptions.parse(self.options, streaming=True, others=WRITING_ONLY))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of a batch."""
        from strom.spark.writer import BatchWriter

        if overwrite:
            raise OptionError("Rows are added to a topic and overwrite nothing: mode('append').")
        options = WriteOptions.parse(self.options, streaming=False, others=READING_ONLY)
        return BatchWriter(options, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """Return the writer of a stream."""
        from strom.spark.writer import StreamWriter

        options = WriteOptions.parse(self.options, streaming=True, others=READING_ONLY)
        return StreamWriter(options, schema)


def _lower(options: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in options.items()}
