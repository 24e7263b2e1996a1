"""What is lost or has no effect is told aloud, where a user of Spark sees it, and told once."""

import logging

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from pyspark.sql.types import StringType, StructField, StructType

from strom.spark.failure import DataLossError
from strom.spark.options import ReadOptions
from strom.spark.planning import Planner, report_loss
from strom.spark.source import StromSource
from tests.spark.scripted import TOPIC, Cluster, serving

VALUES = StructType([StructField("value", StringType())])


def test_a_loss_that_does_not_fail_is_a_warning(caplog):
    report_loss("rides-0: offsets 0 to 9 are gone", fails=False)
    (told,) = caplog.records
    # Not by its name: PySpark gives levels those of Java.
    assert (told.name, told.levelno) == ("strom.spark", logging.WARNING)
    assert told.getMessage() == "rides-0: offsets 0 to 9 are gone. Reading goes on without."


def test_a_loss_that_fails_says_how_to_go_on(caplog):
    with pytest.raises(DataLossError, match=r'are gone\. .* "failOnDataLoss" to "false"'):
        report_loss("rides-0: offsets 0 to 9 are gone", fails=True)
    assert caplog.messages == []


def test_a_read_tells_once_what_has_no_effect(caplog):
    with serving(Cluster(0)) as cluster:
        servers = ",".join(f"{host}:{port}" for host, port in cluster.addresses)
        given = {"kafka.bootstrap.servers": servers, "subscribe": TOPIC}
        ignored = {"maxOffsetsPerTrigger": "5", "kafka.max.poll.records": "7"}
        planner = Planner(ReadOptions.parse({**given, **ignored}, streaming=False))
        planner.topics()
        told = list(caplog.messages)
        planner.topics()
    assert sorted(each.partition(" has no effect")[0] for each in told) == [
        "Option 'kafka.max.poll.records'",
        "Option 'maxOffsetsPerTrigger'",
    ]
    assert caplog.messages == told


@pytest.mark.parametrize("kind", ["writer", "streamWriter"])
def test_a_write_tells_what_has_no_effect(kind):
    given = {"kafka.bootstrap.servers": "one:9092", "topic": TOPIC, "kafka.linger.ms": "5"}
    with pytest.warns(UserWarning, match=r"'kafka\.linger\.ms' has no effect: a batch leaves"):
        getattr(StromSource(given), kind)(VALUES, False)
