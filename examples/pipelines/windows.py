"""Windows over the time of the event: tumbling, sliding and session, with patience for late ones.

A reading may come ten minutes late. A window is written once, when the newest reading is ten
minutes past its end; what comes still later is left out, and counted: `strom pipeline status`
shows it under "Late".
"""

from pyspark.sql import DataFrame, GroupedData
from pyspark.sql import functions as F  # noqa: N812 - as everybody does

from strom.pipelines import Pipeline

pipeline = Pipeline("oven")
pipeline.topic("readings", "oven-readings", json="oven string, at timestamp, celsius double")


@pipeline.step
def in_time(readings: DataFrame) -> DataFrame:
    """Readings, and how late they may be."""
    return readings.withWatermark("at", "10 minutes")


@pipeline.step
def each_five_minutes(in_time: DataFrame) -> DataFrame:
    """Tumbling: each reading is in one window."""
    return _summary(in_time.groupBy(F.window("at", "5 minutes"), "oven"), "window")


@pipeline.step
def last_ten_minutes(in_time: DataFrame) -> DataFrame:
    """Sliding: ten minutes long, a new one every five; each reading is in two."""
    return _summary(in_time.groupBy(F.window("at", "10 minutes", "5 minutes"), "oven"), "window")


@pipeline.step
def bakings(in_time: DataFrame) -> DataFrame:
    """Session: readings with no more than three minutes between them."""
    return _summary(in_time.groupBy(F.session_window("at", "3 minutes"), "oven"), "session_window")


def _summary(groups: GroupedData, window: str) -> DataFrame:
    found = groups.agg(F.count("*").alias("readings"), F.max("celsius").alias("hottest"))
    return found.select("oven", f"{window}.start", f"{window}.end", "readings", "hottest")


pipeline.to_topic("oven-tumbling", of="each_five_minutes", key="oven")
pipeline.to_topic("oven-sliding", of="last_ten_minutes", key="oven")
pipeline.to_topic("oven-sessions", of="bakings", key="oven")
