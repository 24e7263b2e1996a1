"""A transactional id in a conversation: what its producer asks, and how the answers are noted."""

import struct
import time

from tests.conformance.batches import TRANSACTIONAL, Producer, batch
from tests.conformance.raw import decode
from tests.patience import is_done, until, until_coordinated

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
        group = {"group_id": self.talk.topic("-group"), "topics": []}
        until_coordinated(self.talk.raw, group["group_id"])
        until(
            lambda: self.talk.raw.ask("offset_fetch", 9, {"groups": [group]})["groups"][0], is_done
        )
        return self

    def coordinated(self):
        """Wait until the id has a coordinator that has read its log; nothing is noted."""
        until_coordinated(self.talk.raw, self.name, 1)
        until(
            lambda: describe(self.talk, self.name),
            lambda states: "coordinator" not in states[0]["error_code"],
        )

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
        answer = until(
            lambda: self.talk.raw.ask(api, version, values), lambda told: not is_early(told)
        )
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
        states = until(
            lambda: describe(self.talk, self.name), lambda found: "Prepare" not in str(found)
        )
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


def is_early(answer):
    """Whether to ask again: an end is under way, or a log is still being read."""
    told = str(answer)
    return "concurrent_transactions" in told or "coordinator_load_in_progress" in told


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
