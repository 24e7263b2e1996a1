"""Copy a topic into one with more partitions, keys to where they belong there.

To change the number of partitions when order matters: create the new topic with as many as you
want (`strom topic create orders-new --partitions 12`), run this until the lag is nearly nothing
(`strom group describe repartition.orders-new`), stop the producers, wait until this and all
consumers have no lag any more, stop this (`strom pipeline stop repartition`), let the consumers
begin at the end of the new topic (offsets of the old one mean nothing there), then the producers,
and delete the old topic.

Records of one key stay in order, because they come from one partition and go into one. Records
without a key go anywhere. The time of a copy is the time of copying.
"""

from pyspark.sql import DataFrame

from strom.pipelines import Pipeline

pipeline = Pipeline("repartition")
pipeline.topic("orders", "orders-old", includeHeaders="true")


@pipeline.step
def content(orders: DataFrame) -> DataFrame:
    """What is copied; without the column of the partition the keys decide anew."""
    return orders.select("key", "value", "headers")


pipeline.to_topic("orders-new", of="content")
