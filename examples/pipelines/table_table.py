"""Join of two tables, filtered: the flights in space with their commanders, as a table again.

Each topic is read as a stream too, which says whose row has changed; what the row is by then comes
from the tables. So a change on either side makes the joined row anew, and a flight that has no
commander, no position or is not in space is a tombstone: the topic is a changelog as the other two.
A flight that changed twice in a micro-batch is told twice, with the same value.
"""

from strom.pipelines import Pipeline

pipeline = Pipeline("in-space")
pipeline.topic("crew_changes", "crews", json="commander string")
pipeline.topic("position_changes", "positions", json="altitude double")
pipeline.table("crews", json="commander string")
pipeline.table("positions", json="altitude double")
pipeline.sql(
    "changed", "SELECT key FROM {crew_changes} UNION ALL SELECT key FROM {position_changes}"
)
pipeline.sql(
    "in_space",
    """
    SELECT changed.key,
           CASE WHEN crews.commander IS NOT NULL AND positions.altitude >= 100
                THEN to_json(struct(crews.commander, positions.altitude)) END AS value
    FROM {changed} AS changed
    LEFT JOIN {crews} AS crews ON crews.key = changed.key
    LEFT JOIN {positions} AS positions ON positions.key = changed.key
    """,
)
pipeline.to_topic("in-space", of="in_space")
