"""Values as columns: JSON, Avro and Protobuf of a given schema, and what becomes of bad records.

    rides = values.avro(Path("ride.avsc"))

    rides.columns(records)               the columns; a record that is none ends the query
    rides.columns(records, bad="skip")   without such records
    rides.columns(records, bad="keep")   with them, in a column `bad`
    rides.dead_letters(records)          they alone, ready to be written to a topic
    route(rows, "clean", "rides-dead")   both, from one query that reads once
    rides.bytes()                        columns as a value, for writing

`records` has a column `value`, and maybe `key`, `headers`, `topic`, `partition`, `offset` and
`timestamp`, as `format("strom")` and Spark's own connector have them. It may be a batch or a
stream, here or over Spark Connect; the workers need `strom[spark]`, and `strom[formats]` for Avro
and Protobuf. A value that is null is no bad one: its columns are null.

Headers of a dead letter are the record's own, then those below: the names are those of Kafka
Connect where it has one, so that what reads its dead letters reads these. All are text.

    __connect.errors.topic, .partition, .offset   where the record is
    __connect.errors.stage                        VALUE_CONVERTER
    __connect.errors.class.name                   what reads such values here
    __connect.errors.exception.class.name         what it raised
    __connect.errors.exception.message            why it could not be read
    strom.errors.timestamp                        the record's time, in milliseconds since 1970
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody does
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import BinaryType, DataType, StructType

from strom.spark.bodies.body import Body, SchemaError, UnreadableError
from strom.spark.bodies.given import avro_body, json_body, protobuf_body
from strom.spark.bodies.json_body import JsonBody
from strom.spark.value_columns import COLUMNS, REASON, read_column, struct_type, write_column

if TYPE_CHECKING:
    from google.protobuf.message import Message

FAIL, SKIP, KEEP = "fail", "skip", "keep"
#: What a record's column of headers is.
HEADERS = "array<struct<key: string, value: binary>>"
CONNECT = "__connect.errors."
TIMESTAMP_HEADER = "strom.errors.timestamp"
#: How times are written in JSON: by itself Spark leaves out what is below a millisecond.
ALL_DIGITS = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
#: Of a frame that is being read; no field of a schema is called so.
_READ = "_strom_read"
#: The column of records that could not be read, as they go to a topic of dead letters.
BAD = "bad"


def json(columns: str | StructType) -> "Values":
    """Return values that are JSON, with columns as in SQL: `id INT NOT NULL, name STRING`."""
    if isinstance(columns, str):
        return Values(json_body(columns))
    text = ", ".join(f"{each.name} {each.dataType.simpleString()}" for each in columns.fields)
    return Values(JsonBody(text).resolve(columns.jsonValue()))


def avro(schema: str | Path | Mapping[str, Any], *, schema_id: int | None = None) -> "Values":
    """Return values that are Avro, by a schema in JSON, or by the path of one.

    With `schema_id` values begin with the header of a schema registry's clients, and have this id.
    """
    return Values(avro_body(schema, schema_id))


def protobuf(
    descriptors: "str | Path | bytes | type[Message]", message: str | None = None
) -> "Values":
    """Return values that are Protobuf: a message by its full name in a set of descriptors.

    `descriptors` is what `protoc --include_imports --descriptor_set_out=…` wrote, or its path; or
    a class that protoc has generated, which needs no name.
    """
    return Values(protobuf_body(descriptors, message))


class Values:
    """Values of one layout and schema."""

    def __init__(self, body: Body, reader: str = "") -> None:
        self._body = body
        #: Whoever reads, for the errors that name a record: "source 'rides': ".
        self._reader = reader

    def columns(
        self,
        records: DataFrame,
        bad: str = FAIL,
        *,
        beside: Mapping[str, Column] | None = None,
        count_as: str | None = None,
    ) -> DataFrame:
        """Return the records with their values as columns.

        Beside them stay the other columns, or those of `beside`, but for names that the schema has
        as well. `bad` says what becomes of a record that cannot be read: "fail" ends the query and
        names the record and the reason; "skip" leaves it out; "keep" has it in the column `bad`
        (key, value, headers, reason), which is null for all others. With `count_as`, a name, they
        are counted in an observation.
        """
        if bad not in (FAIL, SKIP, KEEP):
            raise SchemaError(f"bad = '{bad}' is unknown: there is {FAIL}, {SKIP}, {KEEP}")
        parsed, kind = self._read(records, count_as)
        if bad == KEEP and BAD in map(str.lower, kind.names):
            raise SchemaError(
                f"the values have a field '{BAD}', and bad = '{KEEP}' a column of that name; "
                f"choose '{SKIP}', with dead_letters for what is left out"
            )
        reason = F.col(_READ)[REASON]
        if bad == SKIP:
            parsed = parsed.where(reason.isNull())
        elif bad == FAIL:
            told = F.raise_error(self._told(records))
            checked = F.when(reason.isNull(), F.col(_READ)).otherwise(told)
            parsed = parsed.withColumn(_READ, checked)
        if beside is None:
            beside = {each: F.col(_quoted(each)) for each in records.columns if each != "value"}
        kept = [F.when(reason.isNotNull(), self._letter(records)).alias(BAD)]
        return parsed.select(
            *_without(beside, kind), *_fields(kind), *(kept if bad == KEEP else ())
        )

    def dead_letters(self, records: DataFrame, *, count_as: str | None = None) -> DataFrame:
        """Return the records that cannot be read: key, value and headers, as a topic takes them."""
        parsed, _ = self._read(records, count_as)
        letters = parsed.where(F.col(_READ)[REASON].isNotNull()).select(
            self._letter(records).alias(BAD)
        )
        return letters.select("bad.key", "bad.value", "bad.headers")

    def bytes(self) -> Column:
        """Return a value made of the columns that are called like the schema's fields."""
        body, kind = self._resolved(SparkSession.active())
        row = F.struct(
            *(F.col(_quoted(each.name)).cast(each.dataType).alias(each.name) for each in kind)
        )
        if isinstance(body, JsonBody):
            return F.to_json(row, ALL_DIGITS).cast("binary")
        return _function(lambda rows: write_column(body, rows), BinaryType())(row)

    def _read(self, records: DataFrame, count_as: str | None) -> tuple[DataFrame, StructType]:
        """Return the records with what was read of their values, and the columns of that."""
        body, kind = self._resolved(records.sparkSession)
        # Here and not in a worker, in the midst of a query: columns that such values cannot have.
        body.reader()
        parse = _function(lambda values: read_column(body, values), _read_type(kind))
        parsed = records.withColumn(_READ, parse(F.col("value").cast("binary")))
        if count_as is not None:
            parsed = parsed.observe(count_as, F.count(F.col(_READ)[REASON]).alias(BAD))
        return parsed, kind

    def _resolved(self, spark: SparkSession) -> tuple[Body, StructType]:
        """Return the layout, and the columns as Spark's type."""
        body = self._body
        if isinstance(body, JsonBody):
            kind = body.resolved is None and StructType.fromDDL(body.columns)
            zone = spark.conf.get("spark.sql.session.timeZone") or "UTC"
            body = body.resolve(kind.jsonValue() if kind else body.kind(), zone)
        return body, struct_type(body.kind())

    def _told(self, records: DataFrame) -> Column:
        """Return what is said of a record that cannot be read."""
        place = [F.lit(f"{self._reader}the record")]
        if {"topic", "partition", "offset"} <= set(records.columns):
            place += [F.lit(" at offset "), F.col("offset").cast("string"), F.lit(" of ")]
            place += [F.col("topic"), F.lit("-"), F.col("partition").cast("string")]
        return F.concat(*place, F.lit(f" is no {self._body.label}: "), F.col(_READ)[REASON])

    def _letter(self, records: DataFrame) -> Column:
        """Return a record as it goes to a topic of dead letters, with the reason."""
        return F.struct(
            _or_null(records, "key", "binary").alias("key"),
            F.col("value").cast("binary").alias("value"),
            self._headers(records).alias("headers"),
            F.col(_READ)[REASON].alias(REASON),
        )

    def _headers(self, records: DataFrame) -> Column:
        reason = F.concat(F.lit(f"it is no {self._body.label}: "), F.col(_READ)[REASON])
        told = {
            f"{CONNECT}{each}": F.col(each)
            for each in ("topic", "partition", "offset")
            if each in records.columns
        }
        told |= {
            f"{CONNECT}stage": F.lit("VALUE_CONVERTER"),
            f"{CONNECT}class.name": F.lit(_name_of(type(self._body))),
            f"{CONNECT}exception.class.name": F.lit(_name_of(UnreadableError)),
            f"{CONNECT}exception.message": reason,
        }
        if "timestamp" in records.columns:
            told[TIMESTAMP_HEADER] = F.unix_millis("timestamp")
        added = F.array(
            *(
                F.struct(
                    F.lit(name).alias("key"),
                    text.cast("string").cast("binary").alias("value"),
                )
                for name, text in told.items()
            )
        ).cast(HEADERS)
        own = F.coalesce(_or_null(records, "headers", HEADERS), F.array().cast(HEADERS))
        return F.concat(own, added)


def route(rows: DataFrame, to: str, dead_letters: str) -> DataFrame:
    """Return rows for one write without the option `topic`: good ones to a topic, bad to another.

    `rows` were read with `bad="keep"`, have got a column `value`, maybe `key` and `headers`, and
    still have `bad`. Steps in between that leave out rows must let pass those whose `bad` is
    not null.
    """
    is_good = F.col(BAD).isNull()

    def either(name: str, kind: str) -> Column:
        return F.when(is_good, _or_null(rows, name, kind)).otherwise(F.col(BAD)[name]).alias(name)

    return rows.select(
        F.when(is_good, F.lit(to)).otherwise(F.lit(dead_letters)).alias("topic"),
        either("key", "binary"),
        either("value", "binary"),
        either("headers", HEADERS),
    )


def _function(of: Callable[[pa.Array], pa.Array], returns: DataType) -> Callable[[Column], Column]:
    """Return a function of a column that workers run on one Arrow batch after the other.

    Spark believes that it may answer differently each time, so that it is not run a second time
    for a filter of what it returns.
    """

    # Spark tells the kind of a function by its hints.
    def run(column: pa.Array) -> pa.Array:
        return of(column)

    declare: Any = arrow_udf
    found: Callable[[Column], Column] = declare(run, returns).asNondeterministic()
    return found


def _read_type(kind: StructType) -> StructType:
    return StructType().add(COLUMNS, kind).add(REASON, "string")


def _without(beside: Mapping[str, Column], kind: StructType) -> list[Column]:
    """Return the columns whose names the value has none of."""
    taken = {name.lower() for name in kind.names}
    return [column.alias(name) for name, column in beside.items() if name.lower() not in taken]


def _fields(kind: StructType) -> list[Column]:
    return [F.col(_READ)[COLUMNS][each].alias(each) for each in kind.names]


def _or_null(frame: DataFrame, name: str, kind: str) -> Column:
    return (F.col(name) if name in frame.columns else F.lit(None)).cast(kind)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _name_of(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
