"""Transactions by single requests, as tests of handlers ask for them."""

from tests import patience

LOADING = {"coordinator_load_in_progress", "coordinator_not_available", "concurrent_transactions"}


def until(raw, api, version, asked):
    """Ask until there is an answer: a coordinator may have to be begun first."""
    return patience.until(
        lambda: raw.ask(api, version, asked), lambda told: told["error_code"] not in LOADING
    )


def begin(raw, name):
    """Have the coordinator give out a producer; who that is."""
    until(raw, "find_coordinator", 3, {"key": name, "key_type": 1})
    asked = {"transactional_id": name, "transaction_timeout": 60_000}
    told = until(raw, "init_producer_id", 5, asked | {"producer_id": -1, "producer_epoch": -1})
    assert told["error_code"] == "none"
    return {key: told[key] for key in ("producer_id", "producer_epoch")}


def add(raw, name, who, topic, indexes):
    """Take partitions of a topic in; the code of each."""
    asked = {f"v3_and_below_{key}": value for key, value in who.items()}
    asked["v3_and_below_transactional_id"] = name
    asked["v3_and_below_topics"] = [{"name": topic, "partitions": indexes}]
    (found,) = raw.ask("add_partitions_to_txn", 3, asked)["results_by_topic_v3_and_below"]
    return [each["partition_error_code"] for each in found["results_by_partition"]]
