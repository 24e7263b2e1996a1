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
