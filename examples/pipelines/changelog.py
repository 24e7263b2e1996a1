"""A stream as a table and back: of each rocket its newest position, as a changelog topic."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody does

from strom.pipelines import Pipeline

pipeline = Pipeline("rocket-positions")
pipeline.topic("flight_data", "flight-data", json="altitude double, speed double")


@pipeline.step
def newest(flight_data: DataFrame) -> DataFrame:
    """The newest value of each key; a key is in one partition, so the offset says which it is."""
    value = F.max_by(F.struct("altitude", "speed"), "offset").alias("newest")
    return flight_data.groupBy("key").agg(value).select("key", "newest.*")


pipeline.to_topic("rocket-positions", of="newest", key="key", mode="update")
