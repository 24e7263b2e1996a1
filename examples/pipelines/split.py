"""Split: one stream of orders into two topics, each with those of one kind.

Each sink reads the source for itself; `strom group describe` shows each one's lag.
"""

from strom.pipelines import Pipeline

pipeline = Pipeline("split-orders")
pipeline.topic("orders", json="id string, country string, amount double")
pipeline.sql("domestic", "SELECT id, amount FROM {orders} WHERE country = 'DE'")
pipeline.sql("abroad", "SELECT id, country, amount FROM {orders} WHERE NOT country <=> 'DE'")
pipeline.to_topic("orders-domestic", of="domestic", key="id")
pipeline.to_topic("orders-abroad", of="abroad", key="id")
