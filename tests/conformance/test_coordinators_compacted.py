"""What coordinators know, read back from logs that the cleaner has been through.

Everything is written many times over, into small segments; when the cleaner has come to the end of
both topics, the broker is killed. The next one must know the same, and go on with it.
"""

from tests.conformance.consumers import Consumers
from tests.conformance.grouping import Talk
from tests.conformance.raw import Raw
from tests.conformance.test_cleaner import is_clean
from tests.conformance.transacting import ABORT, COMMIT, Tx, describe
from tests.conformance.transcript import Transcript
from tests.patience import is_done, until

ROUNDS = 60
OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
#: Longer than any machine stalls: nobody is taken for dead.
SESSION_MS = 600_000
MEGABYTE = 1024 * 1024
SETTINGS = {
    "offsets_topic_num_partitions": 1,
    "offsets_topic_segment_bytes": MEGABYTE,
    "transaction_state_log_num_partitions": 1,
    "transaction_state_log_segment_bytes": MEGABYTE,
    "group_initial_rebalance_delay_ms": 0,
    "group_consumer_max_session_timeout_ms": SESSION_MS,
    "group_consumer_session_timeout_ms": SESSION_MS,
    "log_segment_delete_delay_ms": 1,
    "log_cleaner_backoff_ms": 20,
    "log_cleaner_min_cleanable_ratio": 0.01,
    # What is deleted, and the ends of transactions, go as soon as they may.
    "log_cleaner_delete_retention_ms": 0,
}
BUSY = ("coordinator_load_in_progress", "not_coordinator", "coordinator_not_available")


def make_small(raw, topic):
    """Have the topic of a coordinator, which was made by its own settings, roll often."""
    resource = {"resource_type": 2, "resource_name": topic}
    asked = {"resources": [resource | {"configuration_keys": ["segment.bytes"]}]}
    (told,) = raw.ask("describe_configs", 4, asked)["results"]
    assert [each["value"] for each in told["configs"]] == [str(MEGABYTE)]
    small = {"name": "internal.segment.bytes", "config_operation": 0, "value": "4000"}
    (done,) = raw.ask(
        "incremental_alter_configs", 1, {"resources": [resource | {"configs": [small]}]}
    )["responses"]
    assert done["error_code"] == "none", done


class Cast:
    """Who writes to the coordinators' logs: groups of both kinds, producers, and others."""

    def __init__(self, bootstrap):
        self.talk = Transcript(bootstrap, "kept")
        self.talk.create(partitions=3)
        self.committing, self.aborting, self.open = (
            Tx(self.talk, suffix).with_group() for suffix in ("-c", "-a", "-o")
        )
        for each in (self.committing, self.aborting, self.open):
            each.begin()
        self.classics = Talk(bootstrap, "classic")
        self.classic = self.classics.member("m", session_ms=SESSION_MS)
        self.classic.enter()
        self.classic.joined()
        self.classic.sync(given={self.classic: b"first"})
        self.consumers = Consumers(bootstrap, "consumer")
        self.consumers.create("-read", partitions=4)
        self.stays, *self.guests = (
            self.consumers.consumer(name, "-read", rebalance_ms=SESSION_MS)
            for name in ("stays", "guest", "another")
        )
        self.stays.join()

    def play(self, number):
        """Do everything once more."""
        self.classic.join()
        self.classic.sync(given={self.classic: b"%d" % number})
        guest = self.guests[number % len(self.guests)]
        guest.join()
        guest.leave()
        self.stays.beat()
        for group in ("plain", "gone", "kept-group"):
            self.commit(group, 2 if group == "kept-group" else 0, number)
        self.committing.commit_offset(number, partition=0)
        self.committing.end(COMMIT)
        self.aborting.commit_offset(1000 + number, partition=number % 3)
        self.aborting.end(ABORT)

    def close(self):
        for each in (self.classics, self.consumers):
            each.close()
            each.raw.close()
        self.talk.raw.close()

    def commit(self, group, partition, offset):
        place = {"partition_index": partition, "committed_offset": offset}
        asked = {
            "group_id": group,
            "generation_id_or_member_epoch": -1,
            "topics": [{"name": "kept", "partitions": [place | {"committed_metadata": "m" * 99}]}],
        }
        (topic,) = self.talk.raw.ask("offset_commit", 9, asked)["topics"]
        assert [each["error_code"] for each in topic["partitions"]] == ["none"]


def offsets_of(raw, group):
    asked = {"group_id": group, "topics": None}
    answer = until(
        lambda: raw.ask("offset_fetch", 7, asked), lambda told: told["error_code"] not in BUSY
    )
    return {
        (topic["name"], each["partition_index"]): each["committed_offset"]
        for topic in answer["topics"]
        for each in topic["partitions"]
    }


def told_by(bootstrap):
    """All that a broker tells of groups, offsets and transactions."""
    with Raw(bootstrap) as raw:
        groups, transactions = (
            until(lambda api=api: raw.ask(api, 1, {}), is_done)
            for api in ("list_groups", "list_transactions")
        )
        ids = sorted(each["group_id"] for each in groups["groups"])
        talk = Transcript(bootstrap, "kept")
        with talk.raw:
            states = until(
                lambda: describe(talk, "kept-c", "kept-a", "kept-o"),
                lambda told: "Prepare" not in str(told),
            )
        return {
            "groups": ids,
            "offsets": {each: offsets_of(raw, each) for each in ids},
            "classic": raw.ask("describe_groups", 6, {"groups": ["classic"]}),
            "consumer": raw.ask("consumer_group_describe", 1, {"group_ids": ["consumer"]}),
            "listed": sorted(map(str, transactions["transaction_states"])),
            "transactions": states,
        }


def test_what_coordinators_know_outlives_the_cleaner_and_a_kill(broker_process):
    """OFS-01, TXN-12, CMP-01: compaction takes nothing that counts, and brings nothing back."""
    process = broker_process(**SETTINGS)
    cast = Cast(process.bootstrap)
    raw = cast.talk.raw
    for topic in (OFFSETS, TRANSACTIONS):
        make_small(raw, topic)
    for number in range(ROUNDS):
        cast.play(number)
        if number in (ROUNDS // 2, ROUNDS - 1):
            (deleted,) = raw.ask("delete_groups", 2, {"groups_names": ["gone"]})["results"]
            assert deleted["error_code"] == "none"
    for topic in (OFFSETS, TRANSACTIONS):
        until(lambda topic=topic: is_clean(process.directory, topic))
    cast.open.commit_offset(5000, partition=1)
    before = told_by(process.bootstrap)
    assert "gone" not in before["groups"]
    assert before["offsets"]["plain"] == {("kept", 0): ROUNDS - 1}
    expected = {("kept", 0): ROUNDS - 1, ("kept", 2): ROUNDS - 1}
    assert before["offsets"]["kept-group"] == expected
    cast.close()
    process.kill()
    process.start()
    assert told_by(process.bootstrap) == before
    cast.open.talk = Transcript(process.bootstrap, "kept")
    with cast.open.talk.raw as raw:
        cast.open.end(COMMIT)
        expected[("kept", 1)] = 5000
        until(lambda: offsets_of(raw, "kept-group"), lambda told: told == expected)
