"""Three or more attempts at authorisation with one credit card in five minutes: an alert.

The five minutes may begin at any moment, so windows that Spark lays down will not do: of each card
the last attempts are remembered. Each attempt that makes three or more lie at most five minutes
apart is an alert, at once, also where it comes in out of order. What is more than a minute older
than the newest attempt may be left out. Alerts are joined with the table of card holders, so that
somebody can be called.
"""

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody does
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from strom.pipelines import Pipeline

ATTEMPTS_MIN = 3
WITHIN_US = 5 * 60 * 1_000_000

#: JSON of times and amounts: Spark does not hand an array back to such a function.
REMEMBERED = "attempts string"
FOUND = "card string, attempts int, amount double, first bigint, last bigint"

pipeline = Pipeline("credit-cards")
pipeline.topic("attempts", "authorisations", json="card string, at timestamp, amount double")
pipeline.table("holders", "card-holders", json="name string, phone string")


def densest(times: list[int], at: int) -> slice:
    """Return where the most attempts are that lie within five minutes, one at this time included.

    The times are in order. In a burst that began earlier or goes on later, too, it counts.
    """
    begins = range(bisect_left(times, at - WITHIN_US), bisect_right(times, at))
    found = [slice(begin, bisect_right(times, times[begin] + WITHIN_US)) for begin in begins]
    return max(found, key=lambda each: each.stop - each.start)


def alarm(
    card: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState
) -> Iterator[pd.DataFrame]:
    """Take in the new attempts with a card, and yield an alert for each that is one too many."""
    if state.hasTimedOut:
        state.remove()
        return
    # In their order, whatever the shuffle made of it: run again, a micro-batch finds the same.
    new = pd.concat(frames).sort_values(["at_us", "amount"])
    times, amounts = json.loads(state.get[0]) if state.exists else ([], [])
    found = []
    for at, amount in zip(new["at_us"].tolist(), new["amount"].tolist(), strict=True):
        place = bisect_right(times, at)
        times.insert(place, at)
        amounts.insert(place, amount)
        burst = densest(times, at)
        if burst.stop - burst.start >= ATTEMPTS_MIN:
            first, last = times[burst.start], times[burst.stop - 1]
            found.append((card[0], len(times[burst]), sum(amounts[burst]), first, last))
    remember(times, amounts, state)
    yield pd.DataFrame(found, columns=["card", "attempts", "amount", "first", "last"])


def remember(times: list[int], amounts: list[float], state: GroupState) -> None:
    """Keep what an attempt that may still come could be within five minutes of."""
    watermark_ms = state.getCurrentWatermarkMs()
    kept = bisect_left(times, watermark_ms * 1000 - WITHIN_US)
    state.update((json.dumps([times[kept:], amounts[kept:]]),))
    forgotten_ms = (times[-1] + WITHIN_US) // 1000
    state.setTimeoutTimestamp(max(forgotten_ms, watermark_ms) + 1)


@pipeline.step
def conspicuous(attempts: DataFrame) -> DataFrame:
    """Three attempts or more with a card, at most five minutes apart."""
    known = attempts.where("card IS NOT NULL AND at IS NOT NULL").withWatermark("at", "1 minute")
    counted = known.select(
        "card",
        "at",
        F.unix_micros("at").alias("at_us"),
        F.coalesce("amount", F.lit(0.0)).alias("amount"),
    )
    timeout = GroupStateTimeout.EventTimeTimeout
    found = counted.groupBy("card").applyInPandasWithState(
        alarm, FOUND, REMEMBERED, "append", timeout
    )
    times = {name: F.timestamp_micros(name) for name in ("first", "last")}
    return found.withColumns(times)


@pipeline.step
def alerts(conspicuous: DataFrame, holders: DataFrame) -> DataFrame:
    """The same with who holds the card."""
    named = conspicuous.join(holders, conspicuous.card == holders.key, "left")
    return named.select("card", "name", "phone", "attempts", "amount", "first", "last")


pipeline.to_topic("card-alerts", of="alerts", key="card")
