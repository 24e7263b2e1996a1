"""Three or more attempts at authorisation with one credit card in five minutes: an alert.

Group by card, count in windows, keep what is conspicuous, and join it with the table of card
holders, so that somebody can be called.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody does

from strom.pipelines import Pipeline

ATTEMPTS_MIN = 3

pipeline = Pipeline("credit-cards")
pipeline.topic("attempts", "authorisations", json="card string, at timestamp, amount double")
pipeline.table("holders", "card-holders", json="name string, phone string")


@pipeline.step
def counted(attempts: DataFrame) -> DataFrame:
    """Attempts per card and five minutes."""
    window = F.window("at", "5 minutes")
    found = attempts.withWatermark("at", "1 minute").groupBy(window, "card")
    return found.agg(F.count("*").alias("attempts"), F.sum("amount").alias("amount"))


@pipeline.step
def conspicuous(counted: DataFrame) -> DataFrame:
    """Those with three attempts or more."""
    return counted.where(F.col("attempts") >= ATTEMPTS_MIN)


@pipeline.step
def alerts(conspicuous: DataFrame, holders: DataFrame) -> DataFrame:
    """The same with who holds the card."""
    named = conspicuous.join(holders, conspicuous.card == holders.key, "left")
    return named.select("card", "name", "phone", "attempts", "amount", F.col("window.start"))


pipeline.to_topic("card-alerts", of="alerts", key="card")
