"""The first offsets of a cluster may come with a transaction."""

from tests.conformance.raw import Raw


def test_offsets_join_a_transaction_before_any_group_was_asked_about(strom_broker):
    """TXN-09: clients ask for the group's coordinator only after this."""
    with Raw(strom_broker.bootstrap) as client:
        client.ask("find_coordinator", 4, {"key_type": 1, "coordinator_keys": ["tx"]})
        found = client.ask(
            "init_producer_id",
            4,
            {
                "transactional_id": "tx",
                "transaction_timeout": 60_000,
                "producer_id": -1,
                "producer_epoch": -1,
            },
        )
        answer = client.ask(
            "add_offsets_to_txn",
            3,
            {
                "transactional_id": "tx",
                "producer_id": found["producer_id"],
                "producer_epoch": found["producer_epoch"],
                "group_id": "g",
            },
        )
    assert answer["error_code"] == "none"


def test_a_topic_of_offsets_that_cannot_be_made_is_told_of_once(strom_brokers, caplog):
    """Kafka's default of three replicas keeps every group out of a single node."""
    broker = strom_brokers({"offsets.topic.replication.factor": "3"})
    asked = {"key_type": 0, "coordinator_keys": ["g"]}
    with Raw(broker.bootstrap) as client:
        for _ in range(3):
            (found,) = client.ask("find_coordinator", 4, asked)["coordinators"]
            assert found["error_code"] == "coordinator_not_available"
    (told,) = [each for each in caplog.messages if "__consumer_offsets" in each]
    assert "INVALID_REPLICATION_FACTOR" in told
