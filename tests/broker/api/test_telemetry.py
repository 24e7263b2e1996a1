"""A client's metrics, from the subscription to /metrics. Row: MON-01."""

import time
import urllib.request
from uuid import UUID

import pytest
from confluent_kafka import Producer
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from strom.records.compression import Codec, compress
from tests.conformance.raw import Raw
from tests.patience import PATIENCE_SECONDS

METRICS_RESOURCE = 16
ACCEPTED = [4, 3, 1, 2]


@pytest.fixture
def subscription(raw):
    """All metrics of this test's client, once an hour."""
    changes = {"metrics": "*", "interval.ms": "3600000", "match": "client_id=raw"}
    configs = [{"name": k, "config_operation": 0, "value": v} for k, v in changes.items()]
    resource = {"resource_type": METRICS_RESOURCE, "resource_name": "all", "configs": configs}
    (done,) = raw.ask("incremental_alter_configs", 1, {"resources": [resource]})["responses"]
    assert done["error_code"] == "none", done


def ask(raw, instance_id=None):
    return raw.ask("get_telemetry_subscriptions", 0, {"client_instance_id": instance_id})


def push(raw, known, **given):
    values = {key: known[key] for key in ("client_instance_id", "subscription_id")}
    return raw.ask("push_telemetry", 0, values | given)["error_code"]


def page(broker):
    with urllib.request.urlopen(f"http://127.0.0.1:{broker.broker.http_port}/metrics") as answer:
        return answer.read().decode()


def pushed(value):
    message = MetricsData()
    metric = message.resource_metrics.add().scope_metrics.add().metrics.add(name="org.test.sent")
    metric.sum.aggregation_temporality = 1
    metric.sum.data_points.add(as_int=value)
    return message.SerializeToString()


def test_what_a_client_pushes_is_shown_until_it_ends(raw, broker, subscription):
    known = ask(raw)
    assert known["requested_metrics"] == ["*"]
    assert known["push_interval"] == 3_600_000
    assert known["accepted_compression_types"] == ACCEPTED
    assert known["telemetry_max_bytes"] == 1_048_576
    data = compress(Codec.ZSTD, pushed(7))
    assert push(raw, known, metrics=data, compression_type=4) == "none"
    line = next(each for each in page(broker).splitlines() if each.startswith("org_test_sent{"))
    assert str(known["client_instance_id"]) in line
    assert line.endswith(" 7.0")
    assert push(raw, known, metrics=b"", terminating=True) == "none"
    assert "org_test_sent" not in page(broker)


def test_a_client_is_given_an_id_or_keeps_its_own(raw, subscription):
    first, second = ask(raw), ask(raw)
    assert first["client_instance_id"] != second["client_instance_id"]
    own = UUID(int=0xABCDEF)
    assert ask(raw, own)["client_instance_id"] == own
    assert ask(raw, own)["error_code"] == "throttling_quota_exceeded"


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"client_instance_id": None}, "invalid_request"),
        ({"client_instance_id": UUID(int=1)}, "invalid_request"),
        ({"subscription_id": 1}, "unknown_subscription_id"),
        ({"compression_type": 9}, "unsupported_compression_type"),
        ({"metrics": b"x" * 1_048_577}, "telemetry_too_large"),
        ({"metrics": b"garbage"}, "invalid_record"),
        ({"metrics": b"no zstd", "compression_type": 4}, "invalid_record"),
    ],
    ids=lambda each: str(each)[:40],
)
def test_a_push_that_is_wrong_is_refused(raw, subscription, given, code):
    assert push(raw, ask(raw), **given) == code


@pytest.mark.slow
def test_a_real_client_pushes_what_it_is_asked_for(strom_brokers):
    broker = strom_brokers({"strom.http.port": "0"})
    changes = {"metrics": "*", "interval.ms": "100"}
    configs = [{"name": k, "config_operation": 0, "value": v} for k, v in changes.items()]
    resource = {"resource_type": METRICS_RESOURCE, "resource_name": "all", "configs": configs}
    with Raw(broker.bootstrap) as raw:
        raw.ask("incremental_alter_configs", 1, {"resources": [resource]})
    producer = Producer({"bootstrap.servers": broker.bootstrap, "client.id": "flug"})
    producer.produce("flugdaten", b"x")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while 'client_id="flug"' not in page(broker) and time.monotonic() < deadline:
        producer.poll(0.05)
    shown = [line for line in page(broker).splitlines() if 'client_id="flug"' in line]
    assert any(line.startswith("org_apache_kafka_producer_") for line in shown)
    producer.flush(PATIENCE_SECONDS)
