"""What is shown of partitions and topics, under names that a Kafka operator knows (MON-01)."""

from types import SimpleNamespace
from uuid import UUID

import pytest

from strom.broker.gauges import add_gauges
from strom.broker.metrics import Metrics


def state(leader, isr, replicas):
    return SimpleNamespace(leader=leader, isr=isr, replicas=replicas)


def partition(topic, index, *, is_leader=True, in_sync_min=1, sizes=(0, 0)):
    return SimpleNamespace(
        topic=topic,
        index=index,
        is_leader=is_leader,
        in_sync_min=in_sync_min,
        appended_records=sizes[0],
        appended_bytes=sizes[1],
    )


STATES = {
    "a": {0: state(1, (1, 2), (1, 2)), 1: state(1, (1,), (1, 2)), 2: state(2, (2,), (1, 2))},
    "b": {0: state(-1, (1,), (1,))},
}
HERE = [
    partition("a", 0, in_sync_min=2, sizes=(3, 300)),
    partition("a", 1, in_sync_min=2, sizes=(4, 400)),
    partition("a", 2, is_leader=False),
    partition("b", 0, is_leader=False),
]


@pytest.fixture
def shown():
    """Everything that is shown, by name and topic."""
    topics = {name: SimpleNamespace(partitions=states) for name, states in STATES.items()}
    image = SimpleNamespace(
        topics_by_name=topics, partition=lambda topic, index: STATES[topic].get(index)
    )
    replicas = SimpleNamespace(
        partitions=lambda: iter(HERE), directories=[UUID(int=1)], online_directories=[]
    )
    metrics = Metrics()
    parts = SimpleNamespace(
        metrics=metrics,
        replicas=replicas,
        image=image,
        node_id=1,
        quorum=SimpleNamespace(leader_id=1),
        telemetry=SimpleNamespace(collect=lambda: iter(())),
    )
    add_gauges(parts, SimpleNamespace(connections={1, 2}))
    return {
        (sample.name, sample.labels.get("topic")): sample.value
        for metric in metrics.collect()
        for sample in metric.samples
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kafka_server_replicamanager_partitioncount", 4),
        ("kafka_server_replicamanager_leadercount", 2),
        ("kafka_server_replicamanager_underreplicatedpartitions", 1),
        ("kafka_server_replicamanager_underminisrpartitioncount", 1),
        ("kafka_log_logmanager_offlinelogdirectorycount", 1),
        ("kafka_controller_kafkacontroller_activecontrollercount", 1),
        ("kafka_controller_kafkacontroller_offlinepartitionscount", 1),
        ("kafka_controller_kafkacontroller_globaltopiccount", 2),
        ("kafka_controller_kafkacontroller_globalpartitioncount", 4),
        ("kafka_server_socketservermetrics_connection_count", 2),
    ],
)
def test_the_state_of_the_partitions_is_shown(shown, name, value):
    assert shown[name, None] == value


def test_what_is_written_is_shown_by_topic(shown):
    prefix = "kafka_server_brokertopicmetrics_"
    assert shown[prefix + "messagesin_total", "a"] == 7
    assert shown[prefix + "bytesin_total", "a"] == 700
    assert (prefix + "bytesin_total", "b") not in shown
