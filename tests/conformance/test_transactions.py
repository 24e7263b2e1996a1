"""Transactions over the wire: who may begin, write and end one, and what everybody else hears.

Each case is played to Strom and to Apache Kafka, whose answers are in `answers/transactions.json`.
Rows: TXN-05, TXN-08, TXN-09, TXN-10, TXN-11, TXN-12; KIP-360, KIP-447, KIP-588, KIP-890.
"""

import struct
import time

import pytest

from tests.conformance.batches import TRANSACTIONAL, Producer, batch
from tests.conformance.raw import PATIENCE_SECONDS, decode
from tests.conformance.transcript import check, play

TIMEOUT_MS = 60_000
COMMIT, ABORT = True, False
#: With these a client says that it knows version 2 of transactions.
PRODUCE_V2, END_V2, OFFSETS_V2 = 12, 5, 5
PRODUCE_V1, END_V1, ADD_V1 = 11, 4, 3
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
NO_TIME, NO_TIME_TO_KIO = struct.pack(">q", -1), struct.pack(">q", 1)


class Tx:
    """One transactional id in a conversation, with the producer that it has now."""

    def __init__(self, talk, suffix="-tx"):
        self.talk = talk
        self.name = talk.topic(suffix)
        self.id, self.epoch, self.sequence = -1, -1, {}
        self.coordinated()

    def with_group(self):
        """Wait until the group has a coordinator that has read its log; nothing is noted."""
        asked = {"key_type": 0, "coordinator_keys": [self.talk.topic("-group")]}
        group = {"group_id": self.talk.topic("-group"), "topics": []}
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            (found,) = self.talk.raw.ask("find_coordinator", 4, asked)["coordinators"]
            (told,) = self.talk.raw.ask("offset_fetch", 9, {"groups": [group]})["groups"]
            if found["error_code"] == told["error_code"] == "none":
                return self
        raise AssertionError("the group has no coordinator")

    def coordinated(self):
        """Wait until the id has a coordinator that has read its log; nothing is noted."""
        asked = {"key_type": 1, "coordinator_keys": [self.name]}
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            (found,) = self.talk.raw.ask("find_coordinator", 4, asked)["coordinators"]
            (state,) = describe(self.talk, self.name)
            if found["error_code"] == "none" and "coordinator" not in state["error_code"]:
                return
        raise AssertionError(f"{self.name} has no coordinator")

    def init(self, version=5, **values):
        """Ask for a producer once, and become it if there is one."""
        asked = {"transactional_id": self.name, "transaction_timeout": TIMEOUT_MS, **values}
        answer = self.talk.ask("init_producer_id", version, asked)
        if answer["error_code"] == "none":
            self.id, self.epoch = answer["producer_id"], answer["producer_epoch"]
            self.sequence = {}
        return answer

    def begin(self, version=5):
        """Become the newest producer, however often that must be asked for; only then note it."""
        asked = {"transactional_id": self.name, "transaction_timeout": TIMEOUT_MS}
        answer = self.until("init_producer_id", version, asked)
        self.id, self.epoch, self.sequence = answer["producer_id"], answer["producer_epoch"], {}

    def until(self, api, version, values, only=None):
        """Ask until nothing that was under way is in the way; note that answer."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while "concurrent_transactions" in str(answer := self.talk.raw.ask(api, version, values)):
            assert time.monotonic() < deadline, f"{api} has to wait for good"
        noted = only(answer) if only else answer
        self.talk.lines.append({f"{api} v{version}": self.talk.steady(noted)})
        return answer

    def who(self, **other):
        known = {"transactional_id": self.name, "producer_id": self.id}
        return known | {"producer_epoch": self.epoch} | other

    def add(self, *partitions, version=ADD_V1, suffix="", **other):
        """Take partitions into the transaction, as clients of version 1 do."""
        topics = [{"name": self.talk.topic(suffix), "partitions": list(partitions)}]
        asked = {f"v3_and_below_{key}": value for key, value in self.who(**other).items()}
        asked["v3_and_below_topics"] = topics
        return self.until("add_partitions_to_txn", version, asked)

    def write(self, *values, version=PRODUCE_V2, partition=0, suffix="", **other):
        """Write a batch in the transaction."""
        sequence = other.pop("sequence", self.sequence.get((suffix, partition), 0))
        who = Producer(other.pop("id", self.id), other.pop("epoch", self.epoch), sequence)
        flags = other.pop("attributes", TRANSACTIONAL)
        # Of today, as the markers are: a segment does not last from one year to the next.
        now_ms = round(time.time() * 1000)
        records = batch(
            [value.encode() for value in values], producer=who, time_ms=now_ms, attributes=flags
        )
        asked = {
            "transactional_id": other.pop("transactional_id", self.name),
            "acks": -1,
            "timeout": 10_000,
            "topic_data": [
                {
                    "name": self.talk.topic(suffix),
                    "partition_data": [{"index": partition, "records": records}],
                }
            ],
        }
        assert not other, other
        answer = self.until("produce", version, asked, only=produced)
        (told,) = answer["responses"][0]["partition_responses"]
        if told["error_code"] == "none":
            self.sequence[suffix, partition] = sequence + len(values)
        return answer

    def end(self, committed, version=END_V2, **other):
        """End the transaction; go on as the producer that the answer names."""
        asked = self.who(**other) | {"committed": committed}
        answer = self.until("end_txn", version, asked)
        if answer["error_code"] == "none" and answer.get("producer_epoch", -1) >= 0:
            # The answer names the producer that goes on; the same one, if nothing overflows.
            self.talk.lines.append({"same producer": answer["producer_id"] == self.id})
            self.id, self.epoch = answer["producer_id"], answer["producer_epoch"]
            self.sequence = {}
        return answer

    def described(self):
        """Note the state, once it is not one that passes by itself."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while "Prepare" in str(states := describe(self.talk, self.name)):
            assert time.monotonic() < deadline, states
        self.talk.lines.append({"describe_transactions v0": self.talk.steady(states)})

    def add_offsets(self, version=4, suffix="-group", **other):
        """Take a group's offsets into the transaction, as clients of version 1 do."""
        asked = self.who(**other) | {"group_id": self.talk.topic(suffix)}
        return self.until("add_offsets_to_txn", version, asked)

    def commit_offset(self, offset, version=OFFSETS_V2, partition=0, suffix="", **other):
        """Commit an offset of a group in the transaction."""
        place = {
            "partition_index": partition,
            "committed_offset": offset,
            "committed_metadata": "noted",
        }
        asked = self.who(**{"group_id": self.talk.topic("-group"), **other})
        asked["topics"] = [{"name": self.talk.topic(suffix), "partitions": [place]}]
        return self.until("txn_offset_commit", version, asked)

    def offset(self, *, stable=False):
        """Note what the group has committed."""
        topic = {"name": self.talk.topic(), "partition_indexes": [0]}
        group = {"group_id": self.talk.topic("-group"), "topics": [topic]}
        return self.talk.ask("offset_fetch", 9, {"groups": [group], "require_stable": stable})

    def read(self, isolation=READ_COMMITTED, offset=0, partition=0, suffix=""):
        """Note what a reader sees from the offset on."""
        asked = {
            "max_wait": 0,
            "min_bytes": 0,
            "max_bytes": 10_000_000,
            "isolation_level": isolation,
            "session_epoch": -1,
            "topics": [
                {
                    "topic": self.talk.topic(suffix),
                    "partitions": [
                        {
                            "partition": partition,
                            "fetch_offset": offset,
                            "partition_max_bytes": 10_000_000,
                            "current_leader_epoch": -1,
                            "log_start_offset": -1,
                        }
                    ],
                }
            ],
        }
        return self.talk.ask("fetch", 12, asked, only=seen)

    def producers(self, partition=0, suffix=""):
        """Note whom the partition remembers."""
        topic = {"name": self.talk.topic(suffix), "partition_indexes": [partition]}
        return self.talk.ask("describe_producers", 0, {"topics": [topic]})


def describe(talk, *transactional_ids):
    """Ask for the states; whether there is a time instead of when that was."""
    raw = talk.raw
    raw.send("describe_transactions", 0, {"transactional_ids": transactional_ids})
    frame = raw.read_frame()
    # "None" is -1, which kio takes from nobody.
    _, answer = decode("describe_transactions", 0, frame.replace(NO_TIME, NO_TIME_TO_KIO))
    states = answer["transaction_states"]
    for each in states:
        for topic in each["topics"]:
            # Which partition a group's offsets are in follows from its name, which varies.
            is_own = not topic["topic"].startswith("__")
            topic["partitions"] = sorted(topic["partitions"]) if is_own else "<of the group>"
        each["transaction_start_time"] = {0: 0, 1: -1}.get(each["transaction_start_time"], "then")
    return states


def produced(answer):
    """What became of a batch; where the log starts is told with good news only."""
    (told,) = answer["responses"][0]["partition_responses"]
    kept = ("index", "error_code", "base_offset", "error_message")
    return {name: told[name] for name in kept}


def seen(answer):
    """What a fetch shows of one partition."""
    (told,) = answer["responses"][0]["partitions"]
    aborted = told["aborted_transactions"]
    return {
        "error_code": told["error_code"],
        "high_watermark": told["high_watermark"],
        "last_stable_offset": told["last_stable_offset"],
        "aborted": aborted and [each["first_offset"] for each in aborted],
        "records": told["records"] or [],
    }


def a_newcomer_gets_a_higher_epoch(talk):
    tx = Tx(talk)
    for _ in range(3):
        tx.init()
    first = tx.id
    tx.init(version=0)
    talk.lines.append({"same id": first == tx.id})


def a_producer_may_say_which_epoch_it_has(talk):
    tx = Tx(talk)
    tx.init()
    own = {"producer_id": tx.id, "producer_epoch": tx.epoch}
    tx.init(**own)
    # Asked again, as if the answer had been lost.
    tx.init(**own)
    # The next one makes the first one a zombie.
    tx.init()
    for version in (3, 4, 5):
        tx.init(version, **own)
    tx.init(producer_id=tx.id + 100_000, producer_epoch=0)
    tx.init(producer_id=tx.id, producer_epoch=tx.epoch + 1)
    tx.init(producer_id=tx.id, producer_epoch=tx.epoch)


def an_unknown_id_may_claim_a_producer(talk):
    tx = Tx(talk)
    tx.init(producer_id=4711, producer_epoch=8)
    talk.lines.append({"its own": tx.id == 4711})


def what_init_is_asked_with_is_checked(talk):
    tx = Tx(talk)
    for timeout in (0, -1, 900_001):
        tx.init(transaction_timeout=timeout)
    tx.init(transaction_timeout=900_000)
    tx.init(producer_id=5)
    tx.init(producer_epoch=5)
    tx.init(transactional_id="")


def what_is_open_is_aborted_for_a_newcomer(talk):
    talk.create()
    tx = Tx(talk)
    tx.init()
    tx.add(0)
    tx.write("a", version=PRODUCE_V1)
    tx.described()
    tx.init()
    tx.begin()
    tx.described()
    tx.read()
    tx.read(READ_UNCOMMITTED)
    tx.producers()


def one_that_claims_the_newest_epoch_aborts_its_own(talk):
    talk.create()
    tx = Tx(talk)
    tx.init()
    tx.add(0)
    own = {"producer_id": tx.id, "producer_epoch": tx.epoch}
    tx.init(**own)
    asked = {"transactional_id": tx.name, "transaction_timeout": TIMEOUT_MS, **own}
    tx.until("init_producer_id", 5, asked)
    tx.described()


def what_one_hears_that_is_fenced(talk):
    talk.create()
    for number, version in enumerate((END_V2, END_V1)):
        tx = Tx(talk, f"-tx{number}")
        tx.init()
        tx.add(0)
        tx.init()
        tx.described()
        tx.add(0)
        tx.write("b", version=PRODUCE_V1)
        tx.end(COMMIT, version)
        tx.end(ABORT, version)
        tx.begin()
        tx.end(ABORT, version, producer_epoch=0)


def a_transaction_of_version_2(talk):
    talk.create(partitions=2)
    tx = Tx(talk)
    tx.init()
    tx.write("a", "b")
    tx.write("c")
    tx.write("d", partition=1)
    tx.described()
    tx.read()
    tx.read(READ_UNCOMMITTED)
    tx.end(COMMIT)
    tx.described()
    tx.read()
    tx.read(partition=1)
    tx.write("e")
    tx.end(ABORT)
    tx.described()
    tx.read()
    tx.read(offset=4)
    tx.producers()
    tx.producers(partition=1)


def a_transaction_of_version_1(talk):
    talk.create(partitions=2)
    tx = Tx(talk)
    tx.init(version=4)
    tx.add(0, 1)
    tx.described()
    tx.write("a", "b", version=PRODUCE_V1)
    tx.write("c", version=PRODUCE_V1, partition=1)
    tx.end(COMMIT, version=END_V1)
    tx.described()
    tx.read()
    tx.add(0)
    tx.write("d", version=PRODUCE_V1)
    tx.end(ABORT, version=END_V1)
    tx.described()
    tx.read()
    tx.producers()


def how_version_1_ends(talk):
    talk.create()
    for version in range(5):
        tx = Tx(talk, f"-tx{version}")
        tx.init(version=4)
        tx.end(COMMIT, version)
        tx.end(ABORT, version)
        tx.add(0)
        tx.end(COMMIT, version, producer_epoch=tx.epoch + 1)
        tx.end(COMMIT, version, producer_epoch=-1)
        tx.end(COMMIT, version, producer_id=tx.id + 100_000)
        tx.end(COMMIT, version)
        tx.described()
        tx.end(COMMIT, version)
        tx.end(ABORT, version)
        tx.add(0)
        tx.end(ABORT, version)
        tx.described()
        tx.end(ABORT, version)
        tx.end(COMMIT, version)


def how_version_2_ends(talk):
    talk.create()
    tx = Tx(talk)
    tx.init()
    tx.end(COMMIT)
    tx.end(ABORT, producer_epoch=-1)
    # Nothing was begun, but who knows: an abort is taken.
    tx.end(ABORT)
    tx.described()
    tx.write("a")
    before = tx.epoch
    tx.end(COMMIT, producer_epoch=before + 1)
    tx.end(COMMIT, producer_epoch=before - 1)
    tx.end(COMMIT, producer_id=tx.id + 100_000)
    tx.end(COMMIT)
    tx.described()
    # The first answer was lost: asked again, the outcome is told once more, and not another one.
    again = {"producer_epoch": before}
    talk.ask("end_txn", END_V2, tx.who(**again) | {"committed": COMMIT})
    talk.ask("end_txn", END_V2, tx.who(**again) | {"committed": ABORT})
    tx.end(COMMIT)
    tx.end(ABORT)
    tx.described()
    talk.ask("end_txn", END_V2, tx.who(producer_epoch=tx.epoch - 1) | {"committed": ABORT})
    talk.ask("end_txn", END_V2, tx.who(producer_epoch=tx.epoch - 1) | {"committed": COMMIT})


def an_end_that_comes_late_touches_no_later_transaction(talk):
    talk.create()
    tx = Tx(talk)
    tx.init()
    tx.write("a")
    late = tx.who()
    tx.end(COMMIT)
    tx.write("b")
    for committed in (COMMIT, ABORT):
        talk.ask("end_txn", END_V2, late | {"committed": committed})
    tx.described()
    tx.read()
    tx.end(ABORT)
    tx.described()
    for committed in (COMMIT, ABORT):
        talk.ask("end_txn", END_V2, late | {"committed": committed})
    tx.read()


def who_is_not_the_producer_ends_nothing(talk):
    tx = Tx(talk)
    for version in range(6):
        asked = tx.who(producer_id=5, producer_epoch=0) | {"committed": COMMIT}
        talk.ask("end_txn", version, asked)
    talk.ask("end_txn", 5, {"transactional_id": "", "producer_id": 5, "producer_epoch": 0})


def what_is_added_is_checked(talk):
    talk.create(partitions=2)
    tx = Tx(talk)
    tx.init()
    for version in range(4):
        tx.add(0, 7, version=version)
        tx.add(0, version=version, suffix="-unknown")
        tx.add(0, version=version, producer_epoch=tx.epoch + 1)
        tx.add(0, version=version, producer_id=tx.id + 100_000)
        tx.add(0, version=version, transactional_id=talk.topic("-nobody"))
    tx.described()
    asked = {f"v3_and_below_{key}": value for key, value in tx.who().items()}
    for name in ("__consumer_offsets", "__transaction_state"):
        topics = [{"name": name, "partitions": [0]}, {"name": talk.topic(), "partitions": [0]}]
        talk.ask("add_partitions_to_txn", 3, asked | {"v3_and_below_topics": topics})
    tx.add(0)
    tx.add(0)
    tx.add(0, 1)
    tx.described()
    tx.end(ABORT, END_V1)


def brokers_add_and_verify_many_at_once(talk):
    talk.create(partitions=2)
    one, other = Tx(talk, "-one"), Tx(talk, "-other")
    one.init()
    other.init()
    topics = [{"name": talk.topic(), "partitions": [0]}]
    both = [{"name": talk.topic(), "partitions": [0, 1]}]
    unknown = [{"name": talk.topic("-unknown"), "partitions": [0]}]
    for version in (4, 5):
        for transactions in (
            [one.who(topics=topics, verify_only=True)],
            [one.who(topics=topics), other.who(topics=both)],
            [one.who(topics=both, verify_only=True), other.who(topics=both, verify_only=True)],
            [one.who(topics=unknown), other.who(topics=topics, producer_epoch=7)],
            [one.who(topics=topics, transactional_id=talk.topic("-nobody"), verify_only=True)],
            [one.who(topics=topics, producer_id=5, verify_only=True)],
            [one.who(topics=topics, producer_epoch=7, verify_only=True)],
        ):
            one.until(
                "add_partitions_to_txn", version, {"transactions": transactions}, by_transaction
            )
    one.described()
    one.end(COMMIT)
    other.end(COMMIT)


def by_transaction(answer):
    results = sorted(answer["results_by_transaction"], key=lambda each: each["transactional_id"])
    return answer | {"results_by_transaction": results}


def what_is_written_is_checked(talk):
    talk.create(partitions=3)
    tx = Tx(talk)
    tx.init()
    for version in (10, 11):
        tx.write("not added", version=version, partition=2)
        tx.write("another epoch", version=version, epoch=tx.epoch + 1)
        tx.write("another id", version=version, id=tx.id + 100_000)
        tx.write("unknown", version=version, transactional_id=talk.topic("-nobody"))
        tx.write("without a transactional id", version=version, transactional_id=None)
    tx.write("another epoch", epoch=tx.epoch + 1)
    tx.write("another id", id=tx.id + 100_000)
    tx.write("unknown", transactional_id=talk.topic("-nobody"))
    tx.write("without a transactional id", transactional_id=None)
    tx.write("too late a start", sequence=3)
    tx.write("a")
    tx.write("not of the transaction", attributes=0)
    tx.write("without a transactional id", transactional_id=None, partition=1)
    tx.described()
    tx.read(READ_UNCOMMITTED)
    tx.read(READ_UNCOMMITTED, partition=1)
    tx.end(ABORT)


def a_zombie_gets_nothing_in(talk):
    talk.create(partitions=2)
    tx = Tx(talk)
    tx.init()
    tx.write("a")
    zombie = {"epoch": tx.epoch, "sequence": 1}
    tx.init()
    tx.begin()
    for version in (10, 11, 12):
        tx.write("b", version=version, **zombie)
        tx.write("b", version=version, partition=1, **zombie)
    tx.write("c")
    for version in (10, 11, 12):
        tx.write("b", version=version, **zombie)
    tx.end(COMMIT)
    tx.described()
    tx.read()


def nothing_is_written_after_the_marker(talk):
    talk.create()
    tx = Tx(talk)
    tx.init()
    tx.write("a")
    late = {"epoch": tx.epoch, "sequence": 1}
    tx.end(COMMIT)
    tx.described()
    tx.read()
    for version in (10, 11, 12):
        tx.write("b", version=version, **late)
    tx.read()


def nothing_is_written_after_the_marker_of_version_1(talk):
    talk.create()
    tx = Tx(talk)
    tx.init()
    tx.add(0)
    tx.write("a", version=PRODUCE_V1)
    tx.end(COMMIT, END_V1)
    tx.described()
    for version in (10, 11):
        tx.write("b", version=version)
    tx.read()


def markers(talk, tx, *, suffix="", version=2, **values):
    topics = [{"name": talk.topic(suffix), "partition_indexes": [0]}]
    marker = {
        "producer_id": tx.id,
        "producer_epoch": tx.epoch,
        "transaction_result": ABORT,
        "coordinator_epoch": 0,
        "transaction_version": 2,
        "topics": topics,
    }
    return talk.ask("write_txn_markers", version, {"markers": [marker | values]})


def brokers_and_admins_write_markers(talk):
    talk.create()
    tx = Tx(talk)
    tx.init()
    markers(talk, tx, suffix="-unknown")
    tx.write("a")
    tx.read()
    # By version 2 the epoch of the open transaction is too low; by version 1 it is the right one.
    markers(talk, tx)
    markers(talk, tx, producer_epoch=tx.epoch - 1, transaction_version=1)
    markers(talk, tx, version=1)
    tx.read()
    tx.producers()
    markers(talk, tx, version=1)
    markers(talk, tx, coordinator_epoch=-2)
    markers(talk, tx, producer_epoch=tx.epoch + 1, transaction_result=COMMIT)
    tx.producers()
    talk.ask("write_txn_markers", 2, {"markers": []})
    # Who never wrote here may be told of an end as well.
    markers(talk, tx, producer_id=tx.id + 100_000)


def offsets_of_version_2_count_when_the_transaction_does(talk):
    talk.create(partitions=2)
    tx = Tx(talk).with_group()
    tx.init()
    tx.offset()
    tx.commit_offset(5)
    tx.described()
    tx.offset()
    tx.offset(stable=True)
    tx.end(COMMIT)
    tx.described()
    tx.offset(stable=True)
    tx.commit_offset(7)
    tx.commit_offset(8)
    tx.end(ABORT)
    tx.described()
    tx.offset(stable=True)


def offsets_of_version_1_count_when_the_transaction_does(talk):
    talk.create()
    tx = Tx(talk).with_group()
    tx.init()
    for version in range(3, 5):
        tx.commit_offset(3, version)
    tx.add_offsets()
    for version in range(5):
        tx.commit_offset(version, version)
    tx.offset(stable=True)
    tx.end(COMMIT, END_V1)
    tx.described()
    tx.offset(stable=True)
    for version in range(3, 5):
        tx.commit_offset(9, version)
    tx.offset(stable=True)


def what_is_committed_is_checked(talk):
    talk.create()
    tx = Tx(talk).with_group()
    tx.init()
    tx.add_offsets()
    for version in range(6):
        tx.commit_offset(1, version, partition=7)
        tx.commit_offset(1, version, suffix="-unknown")
        tx.commit_offset(1, version, producer_epoch=tx.epoch + 1)
        tx.commit_offset(1, version, producer_id=tx.id + 100_000)
        tx.commit_offset(1, version, transactional_id=talk.topic("-nobody"))
        tx.commit_offset(1, version, group_id="")
    for version in range(3, 6):
        tx.commit_offset(1, version, generation_id=5, member_id="m")
        tx.commit_offset(1, version, generation_id=-1, member_id="m")
        tx.commit_offset(1, version, generation_id=-1, group_instance_id="i")
    for version in range(5):
        tx.add_offsets(version, producer_epoch=tx.epoch + 1)
        tx.add_offsets(version, producer_id=tx.id + 100_000)
        tx.add_offsets(version, transactional_id=talk.topic("-nobody"))
        tx.add_offsets(version, transactional_id="")
    tx.end(ABORT)


def a_zombie_commits_no_offset(talk):
    talk.create()
    tx = Tx(talk).with_group()
    tx.init()
    tx.commit_offset(1)
    zombie = tx.epoch
    tx.init()
    tx.begin()
    for version in range(6):
        tx.commit_offset(2, version, producer_epoch=zombie)
    tx.commit_offset(3)
    for version in range(6):
        tx.commit_offset(2, version, producer_epoch=zombie)
    tx.end(COMMIT)
    tx.described()
    tx.offset(stable=True)


def transactions_are_listed(talk):
    talk.create()
    one, other = Tx(talk, "-one"), Tx(talk, "-two")
    one.init()
    other.init()
    other.write("a")
    for asked in (
        {},
        {"state_filters": ["Ongoing"]},
        {"state_filters": ["Ongoing", "Empty"]},
        {"state_filters": ["Odd", "Ongoing"]},
        {"state_filters": ["Odd"]},
        {"state_filters": ["ongoing"]},
        {"producer_id_filters": [one.id]},
        {"producer_id_filters": [one.id, other.id], "state_filters": ["Ongoing"]},
        {"producer_id_filters": [999_999]},
        {"duration_filter": 3_600_000},
        {"duration_filter": 0},
        {"duration_filter": -5},
        {"transactional_id_pattern": ".*-one"},
        {"transactional_id_pattern": "-one"},
        {"transactional_id_pattern": ""},
        {"transactional_id_pattern": "*"},
        {"transactional_id_pattern": ".*-(one|two)", "state_filters": ["Empty"]},
    ):
        talk.ask("list_transactions", 2, asked, only=lambda answer: own(answer, talk))
    for version in (0, 1):
        talk.ask("list_transactions", version, {}, only=lambda answer: own(answer, talk))
    told = describe(talk, one.name, "", talk.topic("-nobody"), other.name)
    talk.lines.append({"describe_transactions v0": talk.steady(told)})
    other.end(ABORT)


def own(answer, talk):
    """The list without other conversations' transactions."""
    states = [
        each
        for each in answer["transaction_states"]
        if each["transactional_id"].startswith(talk.name)
    ]
    return answer | {
        "transaction_states": sorted(states, key=lambda each: each["transactional_id"])
    }


CASES = [
    a_newcomer_gets_a_higher_epoch,
    a_producer_may_say_which_epoch_it_has,
    an_unknown_id_may_claim_a_producer,
    what_init_is_asked_with_is_checked,
    what_is_open_is_aborted_for_a_newcomer,
    one_that_claims_the_newest_epoch_aborts_its_own,
    what_one_hears_that_is_fenced,
    a_transaction_of_version_2,
    a_transaction_of_version_1,
    how_version_1_ends,
    how_version_2_ends,
    an_end_that_comes_late_touches_no_later_transaction,
    who_is_not_the_producer_ends_nothing,
    what_is_added_is_checked,
    brokers_add_and_verify_many_at_once,
    what_is_written_is_checked,
    a_zombie_gets_nothing_in,
    nothing_is_written_after_the_marker,
    nothing_is_written_after_the_marker_of_version_1,
    brokers_and_admins_write_markers,
    offsets_of_version_2_count_when_the_transaction_does,
    offsets_of_version_1_count_when_the_transaction_does,
    what_is_committed_is_checked,
    a_zombie_commits_no_offset,
    transactions_are_listed,
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_answers_are_those_of_apache_kafka(either, case, name, request):
    peer = request.node.callspec.params["either"] == "kafka"
    check("transactions", case.__name__, play(case, either.bootstrap, name), peer=peer)
