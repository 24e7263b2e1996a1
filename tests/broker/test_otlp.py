"""Reading pushes: the messages of OpenTelemetry, compressed or not, and what is none."""

import sys

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from strom.broker.otlp import EXPANSION_MAX, read_push, warn_of_missing_package
from strom.broker.telemetry import Sample
from strom.records.compression import Codec, compress
from strom.wire.errors import ErrorCode, KafkaError

DELTA, CUMULATIVE = 1, 2
LIMIT = 1_048_576


def data():
    message = MetricsData()
    metrics = message.resource_metrics.add().scope_metrics.add().metrics
    gauge = metrics.add(name="org.lag")
    gauge.gauge.data_points.add(as_double=1.5).attributes.add(key="topic").value.string_value = "a"
    added = metrics.add(name="org.sent")
    added.sum.aggregation_temporality = DELTA
    added.sum.data_points.add(as_int=7)
    total = metrics.add(name="org.total")
    total.sum.aggregation_temporality = CUMULATIVE
    total.sum.data_points.add(as_int=9)
    times = metrics.add(name="org.time")
    times.histogram.aggregation_temporality = DELTA
    times.histogram.data_points.add(count=3, sum=4.5)
    return message.SerializeToString()


SAMPLES = [
    Sample("org.lag", (("topic", "a"),), 1.5, False),
    Sample("org.sent", (), 7.0, True),
    Sample("org.total", (), 9.0, False),
    Sample("org.time.count", (), 3.0, True),
    Sample("org.time.sum", (), 4.5, True),
]


@pytest.mark.parametrize("codec", list(Codec))
def test_every_kind_of_metric_is_read_in_every_codec(codec):
    assert read_push(codec, compress(codec, data()), LIMIT) == SAMPLES


def refusal(codec, pushed, limit=LIMIT):
    with pytest.raises(KafkaError) as caught:
        read_push(codec, pushed, limit)
    return caught.value.code


def test_what_is_no_message_is_an_invalid_record():
    assert refusal(Codec.NONE, b"garbage") == ErrorCode.INVALID_RECORD


def test_what_is_not_compressed_as_it_says_is_an_invalid_record():
    assert refusal(Codec.ZSTD, b"not zstd") == ErrorCode.INVALID_RECORD


def test_a_push_that_grows_too_much_is_refused():
    limit = 1000
    bomb = compress(Codec.ZSTD, bytes(limit * EXPANSION_MAX + 1))
    assert len(bomb) < limit
    assert refusal(Codec.ZSTD, bomb, limit) == ErrorCode.INVALID_RECORD


def test_without_the_package_it_is_said_once_that_nothing_is_shown(monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "opentelemetry.proto.metrics.v1.metrics_pb2", None)
    warn_of_missing_package.cache_clear()
    for _ in range(2):
        assert read_push(Codec.NONE, data(), LIMIT) == []
    (warning,) = caplog.messages
    assert "pip install strom[telemetry]" in warning
