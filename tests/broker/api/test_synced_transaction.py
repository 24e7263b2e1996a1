"""A coordinator whose log is synced with every step: its answers come when that is done."""

import pytest

from strom.testing.broker import LocalBroker
from tests.broker.api.conftest import create
from tests.broker.api.transacting import add, begin, until

PARTITIONS = 3


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    directory = tmp_path_factory.mktemp("broker")
    with LocalBroker({"log.flush.interval.messages": "1"}, directory=directory) as local:
        yield local


def verify(raw, name, who, topic, indexes):
    """Ask whether partitions are in the transaction; the code of each."""
    topics = [{"name": topic, "partitions": indexes}]
    asked = who | {"transactional_id": name, "verify_only": True, "topics": topics}
    told = raw.ask("add_partitions_to_txn", 5, {"transactions": [asked]})
    (transaction,) = told["results_by_transaction"]
    (found,) = transaction["topic_results"]
    return [each["partition_error_code"] for each in found["results_by_partition"]]


@pytest.mark.parametrize("version", [3, 5])
def test_partitions_are_taken_in_and_the_transaction_ends(raw, name, version):
    create(raw, name, partitions=PARTITIONS)
    who = begin(raw, name)
    assert add(raw, name, who, name, [0, 2]) == ["none", "none"]
    assert verify(raw, name, who, name, [0, 1]) == ["none", "transaction_abortable"]
    asked = {"transactional_id": name, "committed": True} | who
    assert until(raw, "end_txn", version, asked)["error_code"] == "none"


def test_a_refusal_does_not_wait(raw, name):
    create(raw, name, partitions=PARTITIONS)
    who = begin(raw, name)
    late = who | {"producer_epoch": who["producer_epoch"] + 1}
    assert add(raw, name, late, name, [0, 1]) == ["producer_fenced"] * 2
    assert add(raw, name, who, name, [0, PARTITIONS]) == [
        "operation_not_attempted",
        "unknown_topic_or_partition",
    ]
