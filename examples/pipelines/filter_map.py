"""Filter and map: of all rides the long ones, in miles, as Parquet files."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody does

from strom.pipelines import Pipeline

pipeline = Pipeline("long-rides")
pipeline.topic("rides", json="rider string, km double")


@pipeline.step
def long_rides(rides: DataFrame) -> DataFrame:
    """Rides of more than 10 km."""
    return rides.where("km > 10")


@pipeline.step
def in_miles(long_rides: DataFrame) -> DataFrame:
    """The same in miles."""
    return long_rides.select("rider", F.round(F.col("km") * 0.621371, 1).alias("miles"))


pipeline.to_files("archive", of="in_miles", path="long-rides")
