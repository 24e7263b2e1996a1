"""Group and count, sum, min, max: a stream of rides becomes a table of riders, as a changelog.

Each record of the topic is the new state of a rider: make it compacted
(`strom topic create rider-totals --config cleanup.policy=compact`) and it keeps the newest of each.
A pipeline reads it back as a table with `pipeline.table("rider_totals", "rider-totals", …)`.
"""

from strom.pipelines import Pipeline

pipeline = Pipeline("rider-totals")
pipeline.topic("rides", json="rider string, km double")
pipeline.sql(
    "totals",
    """
    SELECT rider, count(*) AS rides, sum(km) AS km, min(km) AS shortest, max(km) AS longest
    FROM {rides}
    GROUP BY rider
    """,
)
pipeline.to_topic("rider-totals", of="totals", key="rider", mode="update")
