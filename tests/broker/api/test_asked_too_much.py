"""A request about more things than one may be about: its connection ends, and nothing else."""

import pytest

from strom.broker import answers
from tests.conformance.raw import Raw

LIMIT = 10
NAMES = [f"name-{number}" for number in range(LIMIT + 1)]
INDEXES = list(range(LIMIT + 1))


def partitions(field, **more):
    return [{field: index} | more for index in INDEXES]


def topic(field, **more):
    return [{"name": "t", "partitions": partitions(field, **more)}]


OFFSETS = topic("partition_index", committed_offset=1, committed_leader_epoch=-1)
ADDED = {
    "v3_and_below_transactional_id": "t",
    "v3_and_below_topics": [{"name": "t", "partitions": INDEXES}],
}
ASKED = [
    ("find_coordinator", 4, {"key_type": 0, "coordinator_keys": NAMES}),
    ("describe_groups", 5, {"groups": NAMES}),
    ("consumer_group_describe", 1, {"group_ids": NAMES}),
    ("delete_groups", 2, {"groups_names": NAMES}),
    ("offset_commit", 9, {"group_id": "g", "topics": OFFSETS}),
    ("txn_offset_commit", 3, {"group_id": "g", "transactional_id": "t", "topics": OFFSETS}),
    ("offset_delete", 0, {"group_id": "g", "topics": topic("partition_index")}),
    ("offset_fetch", 9, {"groups": [{"group_id": each, "topics": None} for each in NAMES]}),
    (
        "offset_fetch",
        9,
        {"groups": [{"group_id": "g", "topics": [{"name": "t", "partition_indexes": INDEXES}]}]},
    ),
    ("add_partitions_to_txn", 3, ADDED),
    ("describe_transactions", 0, {"transactional_ids": NAMES}),
    (
        "offset_for_leader_epoch",
        4,
        {"topics": [{"topic": "t", "partitions": partitions("partition")}]},
    ),
    ("describe_producers", 0, {"topics": [{"name": "t", "partition_indexes": INDEXES}]}),
    (
        "alter_replica_log_dirs",
        2,
        {"dirs": [{"path": "/d", "topics": [{"name": "t", "partitions": INDEXES}]}]},
    ),
    ("describe_configs", 4, {"resources": [{"resource_type": 2, "resource_name": "t"}] * 11}),
    (
        "describe_quorum",
        2,
        {"topics": [{"topic_name": "t", "partitions": partitions("partition_index")}]},
    ),
]


@pytest.mark.parametrize("asked", ASKED, ids=lambda each: each[0])
def test_a_request_about_too_much_ends_its_connection(broker, raw, monkeypatch, asked):
    monkeypatch.setattr(answers, "ASKED_MAX", LIMIT)
    failed = broker.broker.parts.metrics.failed_requests
    with Raw(broker.bootstrap) as greedy:
        greedy.send(*asked)
        assert greedy.closed()
    assert raw.ask("metadata", 12, {"topics": []})["brokers"]
    # It is no fault of ours.
    assert broker.broker.parts.metrics.failed_requests == failed
