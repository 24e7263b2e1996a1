"""A topic as a table: of each key the newest value, also where the number of partitions grew."""

from datetime import datetime, timedelta

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from strom.pipelines.frames import newest

pytestmark = [pytest.mark.slow, pytest.mark.java]

COLUMNS = "key binary, value binary, topic string, partition int, offset long, timestamp timestamp"
NOON = datetime(2026, 11, 16, 12)


def record(key, value, partition, offset, seconds):
    return key, value, "riders", partition, offset, NOON + timedelta(seconds=seconds)


def test_str_09_of_each_key_the_newest_value_counts(spark):
    records = [
        record(b"a", b"Ada", 0, 0, 0),
        # In one partition the offset counts: a producer's clock may go back.
        record(b"a", b"Eve", 0, 1, -60),
        record(b"gone", b"Bo", 0, 2, 0),
        record(b"gone", None, 0, 3, 0),
        record(None, b"nobody's", 0, 4, 0),
        # TOP-09: with more partitions a key is in another one, which may be before the old one.
        record(b"moved", b"old", 1, 900, 0),
        record(b"moved", b"new", 0, 5, 60),
        record(b"left", b"old", 1, 901, 0),
        record(b"left", None, 0, 6, 60),
    ]
    rows = newest(spark.createDataFrame(records, COLUMNS)).collect()
    assert {(bytes(row.key), bytes(row.value)) for row in rows} == {
        (b"a", b"Eve"),
        (b"moved", b"new"),
    }
