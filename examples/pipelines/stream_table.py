"""Join of a stream with a table: rides with the rider's name, from a changelog topic.

The table is the newest value of each key, as it is when a micro-batch joins it: a rider who changes
his name has the new one from the next ride on. A tombstone removes its key; rides of riders that
are not there keep an empty name.
"""

from strom.pipelines import Pipeline

pipeline = Pipeline("named-rides")
pipeline.topic("rides", json="rider string, km double")
pipeline.table("riders", json="name string, city string")
pipeline.sql(
    "named",
    """
    SELECT rides.rider, rides.km, riders.name, riders.city
    FROM {rides} AS rides LEFT JOIN {riders} AS riders ON rides.rider = riders.key
    """,
)
pipeline.to_topic("named-rides", of="named", key="rider")
