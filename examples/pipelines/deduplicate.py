"""Deduplication: each event once, although its sender may have sent it again.

Ids are remembered for as long as a repetition may be late, and then forgotten, so the state does
not grow for ever.
"""

from pyspark.sql import DataFrame

from strom.pipelines import Pipeline

pipeline = Pipeline("events-once")
pipeline.topic("events", json="id string, at timestamp, text string")


@pipeline.step
def once(events: DataFrame) -> DataFrame:
    """The first of each id."""
    found = events.withWatermark("at", "1 hour").dropDuplicatesWithinWatermark(["id"])
    return found.select("id", "at", "text")


pipeline.to_topic("events-once", of="once", key="id")
