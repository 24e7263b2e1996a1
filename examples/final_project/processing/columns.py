"""The processing itself: functions from DataFrames to DataFrames, the same for batches and streams.

A record that cannot be used is not dropped: it gets a `reason`, and goes another way. Among those
is what the database would refuse, for it would refuse it for ever, and the query with it.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

FLIGHT = (
    "flight string, rocket string, pad string, commander string, "
    "launch string, status string, since string"
)
MEASUREMENT = (
    "flight string, time string, altitude_m double, speed_ms double, "
    "fuel_percent double, engine_celsius double"
)
ROCKET = "rocket string, maker string, stages int, payload_kg int"
#: What else the database wants of a rocket.
ROCKET_FITS = "stages > 0 AND payload_kg >= 0"
ASTRONAUT = "astronaut string, nation string, born int"
METRIC = "broker string, metric string, labels string, value double"

PLACE = ["topic", "partition", "offset"]
FLIGHT_COLUMNS = ["flight", "rocket", "pad", "commander", "launch", "status", "since"]
MEASUREMENT_COLUMNS = [
    "flight",
    "measured_at",
    "altitude_m",
    "speed_ms",
    "fuel_percent",
    "engine_celsius",
]
METRIC_COLUMNS = ["broker", "metric", "labels", "value", "told_at"]
#: What tells one series of a broker from another.
SERIES = ("broker", "metric", "labels")

#: Engines run at 2,400 °C, give or take 40: this is ten times that.
HOT_CELSIUS = 2_800.0
#: Beyond any flame, and far within what the database's column can hold.
CELSIUS_MAX = 100_000.0
ALTITUDE_M_MIN = -1_000.0
#: Four such texts fit into an entry of an index.
TEXT_BYTES_MAX = 600
#: What PostgreSQL's texts cannot have in them.
ZERO = "\0"
#: Times that Python and PostgreSQL can both hold.
TIMES = ("1900-01-01T00:00:00Z", "9000-01-01T00:00:00Z")
#: Long enough to average over five measurements, short enough to see an ascent in six steps.
WINDOW = "10 seconds"
#: A page shows the last 20 s, and one that fails is read again up to 8 s later: four times that.
LATE_MAX = "2 minutes"


def flights(records: DataFrame) -> DataFrame:
    """Return where flights stand, each with its record's place, and why it cannot be used if so."""
    read = _read(records, FLIGHT)
    times = {name: f.col(name).try_cast("timestamp") for name in ("launch", "since")}
    return _judged(read.withColumns(times), FLIGHT_COLUMNS, {"flight": _is_flight()})


def measurements(records: DataFrame) -> DataFrame:
    """Return measurements in the database's terms, with place and reason."""
    read = _read(records, MEASUREMENT).withColumn(
        "measured_at", f.col("time").try_cast("timestamp")
    )
    limits = {
        "flight": _is_flight(),
        "fuel_percent": f.col("fuel_percent").between(0, 100),
        "altitude_m": f.col("altitude_m") >= ALTITUDE_M_MIN,
        "speed_ms": ~f.isnan("speed_ms"),
        "engine_celsius": (f.col("engine_celsius") > 0) & (f.col("engine_celsius") < CELSIUS_MAX),
    }
    return _judged(read, MEASUREMENT_COLUMNS, limits)


def metrics(records: DataFrame) -> DataFrame:
    """Return what brokers tell of themselves, with place and reason."""
    read = _read(records, METRIC).withColumn("told_at", f.col("timestamp"))
    return _judged(read, METRIC_COLUMNS, {"value": ~f.isnan("value")})


def usable(judged: DataFrame, columns: list[str]) -> DataFrame:
    """Return what has no reason against it."""
    return judged.where("reason is null").select(*columns)


def rejected(judged: DataFrame) -> DataFrame:
    """Return what cannot be used: where it is, why, and what it says."""
    return judged.where("reason is not null").select(*PLACE, "reason", "text")


def newest(records: DataFrame, *named: str) -> DataFrame:
    """Return the newest record of each key, as compaction would leave it; or of other columns.

    A key is in one partition, so its newest record is the one with the highest offset. A record
    without a value takes its key away.
    """
    key = named or ("key",)
    row = f.struct(*[name for name in records.columns if name not in key])
    latest = records.groupBy(*key).agg(f.max_by(row, "offset").alias("row"))
    found = latest.select(*key, "row.*").select(*records.columns)
    return found.where("value is not null") if "value" in records.columns else found


def master_data(records: DataFrame, schema: str, fits: str = "true") -> DataFrame:
    """Return a compacted topic as a table, of what can be used."""
    read = _read(newest(records), schema)
    columns = [field.split()[0] for field in schema.split(", ")]
    table = read.select(*columns).dropna().where(fits)
    for name, kind in table.dtypes:
        table = table.where(_can_be(name, kind))
    return table


def enriched(standing: DataFrame, rockets: DataFrame, astronauts: DataFrame) -> DataFrame:
    """Return flights with who made the rocket and where the commander is from, where known."""
    makers = rockets.select("rocket", "maker", "payload_kg")
    nations = astronauts.select(f.col("astronaut").alias("commander"), "nation")
    joined = standing.join(f.broadcast(makers), "rocket", "left")
    return joined.join(f.broadcast(nations), "commander", "left")


def windows(measured: DataFrame) -> DataFrame:
    """Return each flight's figures per window, once more whenever they change."""
    window = f.window("measured_at", WINDOW)
    grouped = measured.withWatermark("measured_at", LATE_MAX).groupBy("flight", window)
    return grouped.agg(
        f.count("*").alias("measurements"),
        f.max("altitude_m").alias("altitude_m_max"),
        f.avg("speed_ms").alias("speed_ms_avg"),
        f.max("engine_celsius").alias("engine_celsius_max"),
    ).select(
        "flight",
        f.col("window.start").alias("window_start"),
        f.col("window.end").alias("window_end"),
        "measurements",
        "altitude_m_max",
        "speed_ms_avg",
        "engine_celsius_max",
    )


def anomalies(measured: DataFrame) -> DataFrame:
    """Return the measurements of engines that run hot."""
    return measured.where(f.col("engine_celsius") > HOT_CELSIUS).select(
        "flight",
        "measured_at",
        f.lit("hot engine").alias("kind"),
        f.format_string(
            "%.0f °C, at most %.0f is usual", "engine_celsius", f.lit(HOT_CELSIUS)
        ).alias("detail"),
    )


def _is_flight() -> Column:
    return f.col("flight").rlike("^F-[0-9]+$")


def _read(records: DataFrame, schema: str) -> DataFrame:
    valid = f.make_valid_utf8(f.col("value").cast("string"))
    shown = f.replace(valid, f.lit(ZERO), f.lit("\N{REPLACEMENT CHARACTER}"))
    text = records.withColumn("text", shown).drop("value")
    return text.withColumn("said", f.from_json("text", schema)).select("*", "said.*")


def _judged(read: DataFrame, columns: list[str], limits: dict[str, Column]) -> DataFrame:
    """Give each row the first reason why it cannot be used, or none."""
    reasons = [f.when(f.col(name).isNull(), f"no {name}, or not of its type") for name in columns]
    kinds = dict(read.dtypes)
    checks = [(name, _can_be(name, kinds[name])) for name in columns] + list(limits.items())
    reasons += [f.when(~fits, f"{name} cannot be") for name, fits in checks]
    return read.select(*PLACE, *columns, "text", f.coalesce(*reasons).alias("reason"))


def _can_be(name: str, kind: str) -> Column:
    """Whether the database can hold it, whatever it means."""
    if kind == "string":
        return (f.octet_length(name) <= TEXT_BYTES_MAX) & ~f.contains(f.col(name), f.lit(ZERO))
    if kind == "timestamp":
        return f.col(name).between(*(f.lit(each).cast("timestamp") for each in TIMES))
    return f.lit(True)
