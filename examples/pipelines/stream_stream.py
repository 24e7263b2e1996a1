"""Join of two streams: orders with their payments, if they come within an hour.

Both sides are remembered until their time is over: the watermarks say how late a record may be,
the condition how far apart the two may be. Spark brings equal keys together itself, by a shuffle,
so the topics need not be co-partitioned (same key, same number of partitions) as elsewhere.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody does

from strom.pipelines import Pipeline

pipeline = Pipeline("paid-orders")
pipeline.topic("orders", "placed-orders", json="id string, at timestamp, amount double")
pipeline.topic("payments", json="order string, at timestamp, method string")


@pipeline.step
def paid(orders: DataFrame, payments: DataFrame) -> DataFrame:
    """Each order with its payment."""
    left = orders.withWatermark("at", "10 minutes").alias("o")
    right = payments.withWatermark("at", "10 minutes").alias("p")
    condition = F.expr("o.id = p.order AND p.at BETWEEN o.at AND o.at + INTERVAL 1 HOUR")
    return left.join(right, condition).selectExpr("o.id", "o.amount", "p.method")


pipeline.to_topic("paid-orders", of="paid", key="id")
