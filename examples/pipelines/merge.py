"""Merge: orders from the shops and from the web, as one stream."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody does

from strom.pipelines import Pipeline

pipeline = Pipeline("all-orders")
pipeline.topic("shop_orders", "shop-orders", json="id string, country string, amount double")
pipeline.topic("web_orders", "web-orders", json="id string, country string, amount double")


@pipeline.step
def both(shop_orders: DataFrame, web_orders: DataFrame) -> DataFrame:
    """All orders, with where they came from."""
    shop = shop_orders.withColumn("channel", F.lit("shop"))
    web = web_orders.withColumn("channel", F.lit("web"))
    return shop.unionByName(web).select("id", "country", "amount", "channel")


pipeline.to_topic("orders", of="both", key="id")
