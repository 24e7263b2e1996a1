"""`format("strom")`: topics as Spark reads and writes them.

Options, columns and their meaning are those of Spark's own Kafka connector, so that a job changes
one word.

Spark starts several Python processes for a query, and most of them only ask for the name and the
columns. So what else there is to load is loaded where it is wanted.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from strom.spark.failure import OptionError

if TYPE_CHECKING:
    from strom.spark.options import ReadOptions
    from strom.spark.write_options import WriteOptions

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

        self._check_columns(schema)
        return BatchReader(self._read_options(streaming=False))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return the reader of a stream."""
        from strom.spark.reader import StreamReader

        self._check_columns(schema)
        return StreamReader(self._read_options(streaming=True))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of a batch."""
        from strom.spark.writer import BatchWriter

        if overwrite:
            raise OptionError("Rows are added to a topic and overwrite nothing: mode('append').")
        return BatchWriter(self._write_options(streaming=False), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """Return the writer of a stream.

        What Spark would overwrite in mode complete, the rows of the batch before, stays in a topic:
        the newest of a key is its state.
        """
        from strom.spark.writer import StreamWriter

        return StreamWriter(self._write_options(streaming=True), schema)

    def _check_columns(self, schema: StructType) -> None:
        """Refuse columns that somebody has chosen: what is read would not fit them."""
        given = ", ".join(f"{each.name} {each.dataType.simpleString()}" for each in schema.fields)
        if given.replace(" ", "") != self.schema().replace(" ", ""):
            raise OptionError(
                "The columns of a topic are fixed: leave out schema(…) and select from them; with "
                "the option 'includeHeaders' there are headers too."
            )

    def _read_options(self, *, streaming: bool) -> "ReadOptions":
        from strom.spark.directions import WRITING_ONLY
        from strom.spark.options import ReadOptions

        return ReadOptions.parse(self.options, streaming=streaming, others=WRITING_ONLY)

    def _write_options(self, *, streaming: bool) -> "WriteOptions":
        from strom.spark.directions import READING_ONLY
        from strom.spark.write_options import WriteOptions

        return WriteOptions.parse(self.options, streaming=streaming, others=READING_ONLY)


def _lower(options: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in options.items()}
