"""The four queries of the project, from topics to tables.

    flights    where flights stand, with master data        → flight, rocket, astronaut, rejected
    telemetry  measurements, and those that are odd         → telemetry, anomaly, rejected
    windows    figures per flight and ten seconds           → telemetry_window
    metrics    what the brokers tell of themselves          → broker_metric, rejected

All but `windows` write offsets with their rows. That one writes by key: its rows are the newest
state of a window, and Spark's state goes back with its checkpoint, so a window that is written
again is written the same. Each query is a consumer group, `final-project-<name>`, whose lag is its
own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from psycopg import Connection
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from examples.final_project.database import sink
from examples.final_project.database.sink import Table
from examples.final_project.processing import columns
from examples.final_project.processing.queries import GROUP
from examples.final_project.processing.writing import offsets, patiently

ROWS_PER_BATCH_MAX = 20_000

FLIGHT = Table("flight", ("flight",))
ROCKET = Table("rocket", ("rocket",))
ASTRONAUT = Table("astronaut", ("astronaut",))
TELEMETRY = Table("telemetry", ("flight", "measured_at"))
ANOMALY = Table("anomaly", ("flight", "measured_at", "kind"))
WINDOW = Table("telemetry_window", ("flight", "window_start"))
METRIC = Table("broker_metric", columns.SERIES)
REJECTED = Table("rejected", ("topic", "partition", "offset"))


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Where the queries read, write and note how far they are."""

    spark: SparkSession
    bootstrap: str
    database: str
    checkpoints: Path
    #: How often a micro-batch begins; without it, when there is something to read.
    every: str = "1 second"
    #: The same for the brokers' metrics, which nobody waits for: the others need the cores.
    metrics_every: str = "5 seconds"

    def start(self) -> list[StreamingQuery]:
        """Start all queries, each where it was."""
        judged = columns.measurements(self._stream("telemetry", "windows"))
        measured = columns.usable(judged, columns.MEASUREMENT_COLUMNS)
        return [
            self._query("flights", self._stream("flights", "flights"), self._write_flights),
            self._query("telemetry", self._stream("telemetry", "telemetry"), self._write_telemetry),
            self._query("windows", columns.windows(measured), self._write_windows),
            self._query("metrics", self._stream("broker-metrics", "metrics"), self._write_metrics),
        ]

    def _query(
        self, name: str, frame: DataFrame, write: Callable[[DataFrame, int], None]
    ) -> StreamingQuery:
        every = self.metrics_every if name == "metrics" else self.every
        writer = frame.writeStream.queryName(name).outputMode("update").foreachBatch(write)
        checkpoint = writer.option("checkpointLocation", str(self.checkpoints / name))
        return checkpoint.trigger(processingTime=every).start()

    def _stream(self, topic: str, query: str) -> DataFrame:
        return (
            self.spark.readStream.format("strom")
            .options(**self._options(topic))
            .option("kafka.group.id", GROUP + query)
            .option("maxOffsetsPerTrigger", ROWS_PER_BATCH_MAX)
            .load()
        )

    def _table(self, topic: str, schema: str, fits: str = "true") -> DataFrame:
        # Loaded anew for each batch: Spark plans what a DataFrame of topics reads only once.
        read = self.spark.read.format("strom").options(**self._options(topic)).load()
        return columns.master_data(read, schema, fits)

    def _options(self, topic: str) -> dict[str, str]:
        return {
            "kafka.bootstrap.servers": self.bootstrap,
            "kafka.isolation.level": "read_committed",
            "subscribe": topic,
            "startingOffsets": "earliest",
        }

    def _write_flights(self, records: DataFrame, batch: int) -> None:
        judged = columns.flights(records).persist()
        rockets = self._table("rockets", columns.ROCKET, columns.ROCKET_FITS).persist()
        astronauts = self._table("astronauts", columns.ASTRONAUT).persist()
        standing = columns.usable(judged, ["offset", *columns.FLIGHT_COLUMNS])
        latest = columns.newest(standing, "flight").drop("offset")
        rows = {
            FLIGHT: _rows(columns.enriched(latest, rockets, astronauts)),
            ROCKET: _rows(rockets),
            ASTRONAUT: _rows(astronauts),
            REJECTED: _rows(columns.rejected(judged)),
        }
        self._write_once("flights", batch, rows)
        for kept in (judged, rockets, astronauts):
            kept.unpersist()

    def _write_telemetry(self, records: DataFrame, batch: int) -> None:
        judged = columns.measurements(records).persist()
        measured = columns.usable(judged, columns.MEASUREMENT_COLUMNS)
        rows = {
            TELEMETRY: _rows(measured),
            ANOMALY: _rows(columns.anomalies(measured)),
            REJECTED: _rows(columns.rejected(judged)),
        }
        judged.unpersist()
        patiently(self.database, lambda connection: _ensure_days(connection, rows[TELEMETRY]))
        self._write_once("telemetry", batch, rows)

    def _write_windows(self, changed: DataFrame, _batch: int) -> None:
        rows = {WINDOW: _rows(changed)}
        patiently(self.database, lambda connection: sink.upsert_all(connection, rows))

    def _write_metrics(self, records: DataFrame, batch: int) -> None:
        judged = columns.metrics(records).persist()
        told = columns.usable(judged, ["offset", *columns.METRIC_COLUMNS])
        latest = columns.newest(told, *columns.SERIES).drop("offset")
        rows = {METRIC: _rows(latest), REJECTED: _rows(columns.rejected(judged))}
        judged.unpersist()
        self._write_once("metrics", batch, rows)

    def _write_once(self, query: str, batch: int, rows: sink.Rows) -> None:
        between = offsets(self.checkpoints / query, batch)

        def write(connection: Connection) -> None:
            sink.write_once(connection, GROUP + query, between, rows)

        patiently(self.database, write)


def _rows(frame: DataFrame) -> list[sink.Row]:
    """Return a frame's rows; by Arrow, so that times have their zone."""
    rows: list[sink.Row] = frame.toArrow().to_pylist()
    return rows


def _ensure_days(connection: Connection, measured: list[sink.Row]) -> None:
    """Make the partitions of the days that were measured."""
    times = (row["measured_at"] for row in measured)
    for day in sorted({at.date() for at in times if isinstance(at, datetime)}):
        connection.execute("SELECT flights.ensure_telemetry_day(%s)", [day])
