"""Transactions at every level of the feature `transaction.version`, which may change at any time.

    0   the log of transactions is written as before the feature was
    1   it has tagged fields
    2   partitions are added by their leaders, and every end raises the producer's epoch (KIP-890)

librdkafka never asks for the last; Java's producer does where the cluster has it. Rows: TXN-06,
TXN-07, TXN-12.
"""

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from strom.broker.coordination import java_hash
from tests.conformance.exactly_once import read_committed
from tests.conformance.raw import Raw
from tests.conformance.test_transactions_clients import consumer_of, java, producer_of
from tests.patience import PATIENCE_SECONDS

UPGRADE, SAFE_DOWNGRADE = 1, 2
STATE_TOPIC, STATE_PARTITIONS = "__transaction_state", 50
#: Of the records of that topic, by the level of the feature.
VALUE_VERSIONS = {0: 0, 1: 1, 2: 1}
JAVA_RECORDS = 2000
WHO = {"client_software_name": "tests", "client_software_version": "1"}


class Cluster:
    """A broker whose features change."""

    def __init__(self, process, kafka_tool):
        self.process, self.bootstrap, self.kafka_tool = process, process.bootstrap, kafka_tool
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        for future in admin.create_topics(
            [NewTopic(each, 1, 1) for each in ("c", "java")]
        ).values():
            future.result()

    def set_level(self, level, how):
        update = {"feature": "transaction.version", "max_version_level": level, "upgrade_type": how}
        with Raw(self.bootstrap) as raw:
            told = raw.ask("update_features", 2, {"timeout": 10_000, "feature_updates": [update]})
            assert told["error_code"] == "none", told
            known = raw.ask("api_versions", 4, WHO)["finalized_features"]
        found = {each["name"]: each["max_version_level"] for each in known}
        assert found.get("transaction.version", 0) == level

    def epoch(self, transactional_id):
        """The epoch that the coordinator knows of a producer whose transaction is complete."""
        asked = {"transactional_ids": [transactional_id]}
        with Raw(self.bootstrap) as raw:
            (told,) = raw.ask("describe_transactions", 0, asked)["transaction_states"]
        assert told["transaction_state"] in ("CompleteCommit", "CompleteAbort"), told
        return told["producer_epoch"]

    def value_version(self, transactional_id):
        """The version of the newest record of a transactional id."""
        index = java_hash(transactional_id) % STATE_PARTITIONS
        consumer = consumer_of(self.bootstrap, [], "read_uncommitted")
        consumer.assign([TopicPartition(STATE_TOPIC, index, 0)])
        _, end = consumer.get_watermark_offsets(TopicPartition(STATE_TOPIC, index))
        found, versions = 0, []
        while found < end:
            for each in consumer.consume(end, 1):
                found = each.offset() + 1
                if each.key().endswith(transactional_id.encode()):
                    versions.append(int.from_bytes(each.value()[:2]))
        consumer.close()
        return versions[-1]

    def run_java(self):
        done = self.kafka_tool(
            *("kafka-producer-perf-test", "--bootstrap-server", self.bootstrap, "--topic", "java"),
            *("--num-records", JAVA_RECORDS, "--record-size", 100, "--throughput", 10_000),
            *("--transactional-id", "java", "--transaction-duration-ms", 50),
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def committed(self, topic):
        return read_committed(self.bootstrap, topic, 1)[0]


def transact(producer, *values, commit=True):
    """Write values in one transaction."""
    producer.begin_transaction()
    for value in values:
        producer.produce("c", value)
    assert producer.flush(PATIENCE_SECONDS) == 0
    if commit:
        producer.commit_transaction(PATIENCE_SECONDS)
    else:
        producer.abort_transaction(PATIENCE_SECONDS)


@java
@pytest.mark.parametrize("level", [0, 1])
def test_txn_06_07_clients_write_at_any_level_and_go_on_at_the_next(
    broker_process, kafka_tool, level
):
    cluster = Cluster(broker_process(), kafka_tool)
    cluster.set_level(level, SAFE_DOWNGRADE)
    producer = producer_of(cluster.bootstrap, "c")
    transact(producer, b"1", b"2")
    transact(producer, b"aborted", commit=False)
    cluster.run_java()
    assert (cluster.epoch("c"), cluster.epoch("java")) == (0, 0), "an end raises no epoch"
    assert cluster.value_version("c") == cluster.value_version("java") == VALUE_VERSIONS[level]
    cluster.set_level(2, UPGRADE)
    transact(producer, b"3")
    cluster.run_java()
    assert cluster.epoch("c") == 0
    assert cluster.epoch("java") > 1, "every end raises it"
    assert cluster.value_version("c") == cluster.value_version("java") == VALUE_VERSIONS[2]
    assert cluster.committed("c") == [b"1", b"2", b"3"]
    assert len(cluster.committed("java")) == 2 * JAVA_RECORDS
    # And down again, with what the newest level wrote in the log.
    cluster.set_level(level, SAFE_DOWNGRADE)
    cluster.process.kill()
    cluster.process.start()
    transact(producer, b"4")
    assert cluster.committed("c") == [b"1", b"2", b"3", b"4"]
    assert cluster.value_version("c") == VALUE_VERSIONS[level]
