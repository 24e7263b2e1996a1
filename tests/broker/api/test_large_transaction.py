"""A transaction of as many partitions as its record has room for: it can be ended all the same.

One that could not would hold up careful readers of all of its partitions for ever.
"""

import pytest

from strom.testing.broker import LocalBroker
from tests.broker.api.conftest import create

PARTITIONS = 80
BATCH_BYTES_MAX = 400
LOADING = {"coordinator_load_in_progress", "coordinator_not_available", "concurrent_transactions"}


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    directory = tmp_path_factory.mktemp("broker")
    with LocalBroker({"message.max.bytes": str(BATCH_BYTES_MAX)}, directory=directory) as local:
        yield local


def until(raw, api, version, asked):
    """Ask until there is an answer: a coordinator may have to be begun first."""
    while True:
        told = raw.ask(api, version, asked)
        if told["error_code"] not in LOADING:
            return told


def begin(raw, name):
    until(raw, "find_coordinator", 3, {"key": name, "key_type": 1})
    asked = {"transactional_id": name, "transaction_timeout": 60_000}
    told = until(raw, "init_producer_id", 5, asked | {"producer_id": -1, "producer_epoch": -1})
    assert told["error_code"] == "none"
    return {key: told[key] for key in ("producer_id", "producer_epoch")}


def add(raw, name, who, topic, index):
    asked = {f"v3_and_below_{key}": value for key, value in who.items()}
    asked["v3_and_below_transactional_id"] = name
    asked["v3_and_below_topics"] = [{"name": topic, "partitions": [index]}]
    (found,) = raw.ask("add_partitions_to_txn", 3, asked)["results_by_topic_v3_and_below"]
    (told,) = found["results_by_partition"]
    return told["partition_error_code"]


@pytest.mark.parametrize("version", [3, 5])
@pytest.mark.parametrize("more", range(4))
def test_what_could_be_added_can_be_ended(raw, name, version, more):
    transactional_id = name + "x" * more
    create(raw, transactional_id, partitions=PARTITIONS)
    who = begin(raw, transactional_id)
    codes = [add(raw, transactional_id, who, transactional_id, n) for n in range(PARTITIONS)]
    assert set(codes) == {"none", "unknown_server_error"}
    asked = {"transactional_id": transactional_id, "committed": True}
    assert until(raw, "end_txn", version, asked | who)["error_code"] == "none"
    assert begin(raw, transactional_id)["producer_id"] == who["producer_id"]
