"""Produce: what is appended, what is refused, and what a sequence number is good for.

Rows: PRO, MSG, ACK-01, ACK-02, TXN-01 to TXN-04.
"""

import pytest

from tests.conformance import batches
from tests.conformance.batches import NOW_MS, TRANSACTIONAL, Producer, batch, headers, record
from tests.conformance.raw import Raw
from tests.conformance.transcript import wait_usable


@pytest.fixture
def node(either):
    """A connection to Strom, then one to Apache Kafka."""
    with Raw(either.bootstrap) as raw:
        yield Node(raw)


@pytest.fixture
def topic(node, name):
    return node.create(name)


class Node:
    """A connection with the few requests of this file."""

    def __init__(self, raw):
        self.raw = raw

    def create(self, name, **config):
        configs = [{"name": k.replace("_", "."), "value": str(v)} for k, v in config.items()]
        topic = {"name": name, "num_partitions": 1, "replication_factor": 1, "configs": configs}
        made = self.raw.ask("create_topics", 7, {"topics": [topic], "timeout": 10000})
        assert made["topics"][0]["error_code"] == "none"
        wait_usable(self.raw, name, 1)
        return name

    def send(self, topic, records, index=0, acks=-1):
        data = {"index": index, "records": records}
        topics = [{"name": topic, "partition_data": [data]}]
        asked = {"acks": acks, "timeout": 10000, "topic_data": topics}
        answer = self.raw.ask("produce", 12, asked)
        return answer["responses"][0]["partition_responses"][0]

    def send_as(self, topic, producer, epoch, sequence, values=(b"v",)):
        sent = batch(values, producer=Producer(producer, epoch, sequence))
        answer = self.send(topic, sent)
        return answer["error_code"], answer["base_offset"]

    def fetch(self, topic, offset=0):
        wanted = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 24}
        topics = [{"topic": topic, "partitions": [wanted]}]
        asked = {"replica_id": -1, "max_wait": 0, "max_bytes": 1 << 24, "topics": topics}
        return self.raw.ask("fetch", 12, asked)["responses"][0]["partitions"][0]

    def producer_id(self):
        while True:
            asked = {"transaction_timeout": 1000, "producer_id": -1, "producer_epoch": -1}
            answer = self.raw.ask("init_producer_id", 5, asked)
            if answer["error_code"] == "none":
                return answer["producer_id"], answer["producer_epoch"]


#: Where Apache Kafka stumbles over a batch (UNKNOWN_SERVER_ERROR), Strom says what is wrong.
UNREADABLE = "unknown_server_error unsupported_compression_type"

REFUSED = {
    "a checksum that is wrong": (batch([b"x"], crc=7), "corrupt_message"),
    "a length that is too long": (batch([b"x"], length=5000), "invalid_record"),
    "a length that is too short": (batch([b"x"], length=3), "corrupt_message"),
    "an old message set": (batch([b"x"], magic=1), "invalid_record"),
    "a format of the future": (batch([b"x"], magic=3), "corrupt_message"),
    "a control batch": (batch([b"x"], attributes=batches.CONTROL), "invalid_record"),
    "a count that is not its offsets": (batch([b"x"], last_offset_delta=4), "invalid_record"),
    "a count of nothing": (batch([b"x"], count=0), "invalid_record"),
    "two batches": (batch([b"x"]) + batch([b"y"]), "invalid_record"),
    "a codec that does not exist": (batch([b"x"], attributes=7), UNREADABLE),
    "nothing at all": (b"", "invalid_record"),
    "half a header": (batch([b"x"])[:40], "invalid_record"),
    "half a batch": (batch([b"x" * 99])[:-20], "invalid_record"),
}


@pytest.mark.parametrize(("records", "code"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_batch_is_refused(topic, node, name, records, code):
    assert node.send(topic, records)["error_code"] in code.split()
    assert node.send(topic, batch([b"good"]))["base_offset"] == 0


STUMBLED = "unknown_server_error invalid_record"
SEALED = {
    "records that end too soon": (batch([b"x"], count=9, last_offset_delta=8), "invalid_record"),
    "bytes behind the last record": (
        batch([b"x"], records=record(0, b"x") + b"\0"),
        "invalid_record",
    ),
    "bytes that are no record": (batch([b"x"], records=b"\xff" * 9), STUMBLED),
    "gzip that is none": (batch([b"x"], attributes=batches.GZIP), STUMBLED),
}


@pytest.mark.parametrize(("records", "code"), SEALED.values(), ids=SEALED.keys())
def test_what_is_wrong_inside_a_sealed_batch_disturbs_nobody(topic, node, name, records, code):
    """A right checksum around wrong records helps nobody; `test_records` has many more of them."""
    for acks in (-1, 1):
        answer = node.send(topic, records, acks=acks)
        assert answer["error_code"] in code.split()
        assert answer["record_errors"] == []
    assert node.send(topic, batch([b"good"]))["base_offset"] == 0
    (found,) = headers(node.fetch(topic)["records"])
    assert (found.base_offset, found.last_offset) == (0, 0)


def test_a_topic_or_partition_that_is_not_there_is_told(node, name):
    assert node.send(name, batch([b"x"]))["error_code"] == "unknown_topic_or_partition"
    node.create(name)
    answer = node.send(name, batch([b"x"]), index=8)
    assert answer["error_code"] == "unknown_topic_or_partition"


@pytest.mark.parametrize("codec", range(5))
def test_batches_come_back_as_they_were_sent(topic, node, name, codec):
    sent = batch([b"one " * 50, b"two " * 50, (b"key", None)], codec=codec)
    assert node.send(topic, batch([b"before"]))["base_offset"] == 0
    assert node.send(topic, sent)["base_offset"] == 1
    found = node.fetch(topic, offset=2)["records"]
    assert headers(found)[0].base_offset == 1
    assert found[8 + 4 + 4 :] == sent[8 + 4 + 4 :], "only offset and leader epoch may differ"


def test_a_batch_over_the_limit_is_refused_and_one_at_the_limit_is_not(node, name):
    small = batch([b"x" * 100])
    topic = node.create(name, max_message_bytes=len(small))
    assert node.send(topic, small)["error_code"] == "none"
    answer = node.send(topic, batch([b"x" * 101]))
    assert answer["error_code"] == "message_too_large"


def test_one_replica_is_enough_where_there_is_no_other(node, name):
    """Whatever `min.insync.replicas` says of a topic that has one."""
    topic = node.create(name, min_insync_replicas=3)
    assert node.send(topic, batch([b"x"]), acks=-1)["error_code"] == "none"


def test_times_of_the_broker(node, name):
    topic = node.create(name, message_timestamp_type="LogAppendTime")
    answer = node.send(topic, batch([b"a", b"b"]))
    stamped = answer["log_append_time"]
    assert stamped > NOW_MS
    (found,) = headers(node.fetch(topic)["records"])
    assert found.attributes == batches.LOG_APPEND_TIME
    assert found.max_time == stamped


def test_times_too_far_away_are_refused_with_the_record(node, name):
    topic = node.create(name, message_timestamp_before_max_ms=1000)
    answer = node.send(topic, batch([b"a", b"b"]))
    assert answer["error_code"] == "invalid_timestamp"
    assert [each["batch_index"] for each in answer["record_errors"]] == [0, 1]
    assert answer["error_message"]


def test_a_compacted_topic_wants_keys(node, name):
    topic = node.create(name, cleanup_policy="compact")
    answer = node.send(topic, batch([(b"k", b"v"), b"no key", (b"k", b"w")]))
    assert answer["error_code"] == "invalid_record"
    assert [each["batch_index"] for each in answer["record_errors"]] == [1]
    assert node.send(topic, batch([(b"k", b"v")]))["base_offset"] == 0


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
def test_a_topic_may_choose_its_compression(node, name, codec):
    topic = node.create(name, compression_type=codec)
    values = [b"again and again " * 20] * 9
    assert node.send(topic, batch(values, codec=batches.GZIP))["error_code"] == "none"
    (found,) = headers(node.fetch(topic)["records"])
    expected = ["uncompressed", "gzip", "snappy", "lz4", "zstd"].index(codec)
    assert (found.attributes & 7, found.count) == (expected, 9)


def test_what_cannot_be_recompressed_is_refused_for_its_own_reason(node, name):
    """A client that hears MESSAGE_TOO_LARGE splits its batch; anything else it would give up."""
    topic = node.create(name, compression_type="gzip", max_message_bytes=1000)
    assert node.send(topic, batch([b"x" * 2000]))["error_code"] == "message_too_large"
    assert node.send(topic, batch([b"x"], crc=7))["error_code"] == "corrupt_message"
    unreadable = batch([b"x"], attributes=batches.LZ4)
    assert node.send(topic, unreadable)["error_code"] in STUMBLED.split()
    assert node.send(topic, batch([b"good"]))["base_offset"] == 0


def test_a_batch_that_holds_much_is_checked_like_any_other(topic, node, name):
    """A few KB that are megabytes when decompressed: here a thread looks into them first."""
    values = [bytes(1_000_000)] * 8
    assert node.send(topic, batch(values, codec=batches.GZIP))["base_offset"] == 0
    short = batch(values, codec=batches.GZIP, count=9, last_offset_delta=8)
    assert node.send(topic, short)["error_code"] == "invalid_record"
    assert node.send(topic, batch([b"next"]))["base_offset"] == 8


def test_a_duplicate_is_answered_with_its_first_offset(topic, node, name):
    producer, epoch = node.producer_id()
    sent = [node.send_as(topic, producer, epoch, n) for n in range(6)]
    assert sent == [("none", n) for n in range(6)]
    # The last five are remembered; the one before is too old to say where it went.
    again = [node.send_as(topic, producer, epoch, n) for n in range(1, 6)]
    assert again == [("none", n) for n in range(1, 6)]
    code, _ = node.send_as(topic, producer, epoch, 0)
    assert code in {"duplicate_sequence_number", "out_of_order_sequence_number"}
    assert node.fetch(topic)["high_watermark"] == 6


def test_a_gap_is_refused_and_leaves_no_trace(topic, node, name):
    producer, epoch = node.producer_id()
    assert node.send_as(topic, producer, epoch, 0, [b"a", b"b"]) == ("none", 0)
    assert node.send_as(topic, producer, epoch, 3)[0] == "out_of_order_sequence_number"
    assert node.send_as(topic, producer, epoch, 1)[0] == "out_of_order_sequence_number"
    assert node.send_as(topic, producer, epoch, 2) == ("none", 2)


def test_an_older_epoch_is_fenced_and_a_newer_one_begins_at_zero(topic, node, name):
    producer, epoch = node.producer_id()
    assert node.send_as(topic, producer, epoch + 1, 0) == ("none", 0)
    assert node.send_as(topic, producer, epoch, 0)[0] == "invalid_producer_epoch"
    assert node.send_as(topic, producer, epoch + 2, 5)[0] == "out_of_order_sequence_number"
    assert node.send_as(topic, producer, epoch + 2, 0) == ("none", 1)


def test_sequences_wrap_round(topic, node, name):
    producer, epoch = node.producer_id()
    last = 2**31 - 1
    # A producer that the broker does not know may begin anywhere.
    assert node.send_as(topic, producer, epoch, last - 1, [b"a", b"b"]) == ("none", 0)
    assert node.send_as(topic, producer, epoch, 0) == ("none", 2)
    assert node.send_as(topic, producer, epoch, last - 1, [b"a", b"b"]) == ("none", 0)


def test_producer_ids_are_never_given_twice(node):
    given = [node.producer_id() for _ in range(20)]
    assert len({producer for producer, _ in given}) == 20
    assert {epoch for _, epoch in given} == {0}


def test_the_state_of_producers_is_told(topic, node, name):
    producer, epoch = node.producer_id()
    node.send_as(topic, producer, epoch, 0, [b"a", b"b", b"c"])
    asked = {"topics": [{"name": topic, "partition_indexes": [0]}]}
    (told,) = node.raw.ask("describe_producers", 0, asked)["topics"][0]["partitions"]
    (active,) = told["active_producers"]
    assert (active["producer_id"], active["producer_epoch"]) == (producer, epoch)
    assert active["last_sequence"] == 2
    assert active["current_txn_start_offset"] == -1


def send_several(node, *topics, version=12):
    """Produce for (name, [(index, records), ...]) each; what is told, by name and index."""
    asked = [
        {"name": name, "partition_data": [{"index": n, "records": each} for n, each in batches]}
        for name, batches in topics
    ]
    answer = node.raw.ask("produce", version, {"acks": 1, "timeout": 10000, "topic_data": asked})
    told = [
        ((topic["name"], each["index"]), (each["error_code"], each["base_offset"]))
        for topic in answer["responses"]
        for each in topic["partition_responses"]
    ]
    assert len(dict(told)) == len(told), "each partition is told once"
    return dict(told)


@pytest.mark.parametrize("version", [3, 9, 12])
def test_the_last_of_several_batches_for_a_partition_counts(topic, node, name, version):
    """One batch a partition: Apache Kafka has a map of them, and forgets what was there before."""
    one, two, three = batch([b"1"]), batch([b"2"] * 2), batch([b"3"] * 3)
    twice = [(topic, [(0, one), (0, three)])]
    assert send_several(node, *twice, version=version) == {(topic, 0): ("none", 0)}
    apart = [(topic, [(0, one)]), (topic, [(0, two)])]
    assert send_several(node, *apart, version=version) == {(topic, 0): ("none", 3)}
    assert [each.count for each in headers(node.fetch(topic)["records"])] == [3, 2]


def test_a_batch_is_not_judged_by_another_one_for_its_partition(topic, node, name):
    """What a thread found in a heavy batch is true of that one alone."""
    sealed, _ = SEALED["records that end too soon"]
    heavy = batch([bytes(1_000_000)] * 8, codec=batches.GZIP)
    assert send_several(node, (topic, [(0, sealed), (0, heavy)])) == {(topic, 0): ("none", 0)}
    assert [each.count for each in headers(node.fetch(topic)["records"])] == [8]
    assert send_several(node, (topic, [(0, heavy), (0, sealed)])) == {
        (topic, 0): ("invalid_record", -1)
    }


def test_a_topic_without_partitions_is_not_told_of(topic, node, name):
    assert send_several(node, (topic, [])) == {}
    assert send_several(node, (topic, []), (topic, [(0, batch([b"x"]))])) == {
        (topic, 0): ("none", 0)
    }


#: What the log itself refuses is told with where it begins; what is wrong before that is not.
STARTS_TOLD = {
    "a control batch", "a count that is not its offsets", "a count of nothing",
    "a codec that does not exist", *SEALED,
}  # fmt: skip
WORDS_TOLD = {
    "a length that is too short": "Record size 3 is less than the minimum record overhead (14)",
    "a format of the future": "Invalid magic found in record: 3",
}


@pytest.mark.parametrize("label", [*REFUSED, *SEALED])
def test_a_refusal_tells_where_the_log_begins_and_what_is_wrong(topic, node, name, label):
    node.send(topic, batch([b"x"] * 3))
    place = {"partition_index": 0, "offset": 2}
    asked = {"topics": [{"name": topic, "partitions": [place]}], "timeout": 10000}
    node.raw.ask("delete_records", 2, asked)
    records, _ = (REFUSED | SEALED)[label]
    told = node.send(topic, records)
    assert told["log_start_offset"] == (2 if label in STARTS_TOLD else -1)
    assert told["error_message"] == WORDS_TOLD.get(label)
    assert (told["base_offset"], told["log_append_time"]) == (-1, None)


def test_a_refused_sequence_is_told_with_where_the_log_begins(topic, node, name):
    producer, epoch = node.producer_id()
    node.send_as(topic, producer, epoch, 0)
    gap = batch([b"x"], producer=Producer(producer, epoch, 5))
    assert node.send(topic, gap)["log_start_offset"] == 0
    assert node.send(topic, gap, index=7)["log_start_offset"] == -1
    unkeyed = node.create(f"{name}-compacted", cleanup_policy="compact")
    assert node.send(unkeyed, batch([b"x"]))["log_start_offset"] == 0
    small = node.create(f"{name}-small", max_message_bytes=10)
    assert node.send(small, batch([b"x"]))["log_start_offset"] == -1


def test_many_records_that_a_topic_does_not_take_are_named(node, name):
    """Thousands in one batch: here a thread looks for them, and nobody waits for that."""
    topic = node.create(name, cleanup_policy="compact")
    values = [(b"k", b"v") if n % 3 else b"no key" for n in range(4500)]
    told = node.send(topic, batch(values))
    assert told["error_code"] == "invalid_record"
    assert [each["batch_index"] for each in told["record_errors"]] == list(range(0, 4500, 3))
    assert "1500 record errors in total" in told["error_message"]
    assert told["log_start_offset"] == 0
    old = node.create(f"{name}-old", message_timestamp_before_max_ms=1000)
    told = node.send(old, batch([b"v"] * 4500))
    assert told["error_code"] == "invalid_timestamp"
    assert len(told["record_errors"]) == 4500
    for each in (topic, old):
        assert node.fetch(each)["high_watermark"] == 0


def test_some_batches_of_a_request_are_taken_while_records_of_others_are_named(node, name):
    topic = node.create(name, cleanup_policy="compact")
    other = node.create(f"{name}-other")
    keyless = batch([b"no key"] * 2000)
    told = send_several(node, (topic, [(0, keyless)]), (other, [(0, keyless)]))
    assert told == {(topic, 0): ("invalid_record", -1), (other, 0): ("none", 0)}


@pytest.mark.parametrize("taken", [True, False])
def test_records_without_a_time_have_any_age(node, name, taken):
    topic = node.create(name, message_timestamp_before_max_ms=1000)
    times = [0 if taken else 1, *[0] * 2999]
    records = b"".join(record(n, b"v", time_delta=delta) for n, delta in enumerate(times))
    told = node.send(topic, batch([b"v"] * 3000, records=records, time_ms=-1))
    assert told["error_code"] == ("none" if taken else "invalid_timestamp")
    assert [each["batch_index"] for each in told["record_errors"]] == ([] if taken else [0])


@pytest.mark.parametrize("count", [3, 3000])
def test_a_producer_that_claims_the_brokers_time_is_judged_by_it(node, name, count):
    claimed = batch([b"v"] * count, attributes=batches.LOG_APPEND_TIME)
    answers = {
        node.create(name): ("none", 0),
        node.create(f"{name}-old", message_timestamp_before_max_ms=1000): (
            "invalid_timestamp",
            count,
        ),
        node.create(f"{name}-own", message_timestamp_type="LogAppendTime"): (
            "invalid_timestamp",
            count,
        ),
    }
    for topic, expected in answers.items():
        told = node.send(topic, claimed)
        assert (told["error_code"], len(told["record_errors"])) == expected, topic


@pytest.mark.parametrize("acks", [-1, 3])
def test_a_batch_of_a_transaction_without_its_id_has_the_whole_request_refused(
    topic, node, name, acks
):
    """Also the batches beside it, and where there is something else to be said."""
    plain = batch([b"plain"])
    odd = batch([b"odd"], producer=Producer(*node.producer_id(), 0), attributes=TRANSACTIONAL)
    for places in ([(0, plain), (7, odd)], [(7, odd), (0, plain)], [(0, odd), (0, plain)]):
        data = [{"index": index, "records": records} for index, records in places]
        topics = [{"name": topic, "partition_data": data}]
        asked = {"acks": acks, "timeout": 10000, "topic_data": topics}
        (answer,) = node.raw.ask("produce", 12, asked)["responses"]
        told = answer["partition_responses"]
        refused = "transactional_id_authorization_failed"
        assert [each["error_code"] for each in told] == [refused] * len(dict(places))
    assert node.send(topic, plain)["base_offset"] == 0


def test_without_answers_such_a_request_closes_the_connection(topic, node, name):
    odd = batch([b"odd"], producer=Producer(*node.producer_id(), 0), attributes=TRANSACTIONAL)
    data = [{"index": index, "records": each} for index, each in enumerate([batch([b"x"]), odd])]
    topics = [{"name": topic, "partition_data": data}]
    node.raw.send("produce", 12, {"acks": 0, "timeout": 10000, "topic_data": topics})
    assert node.raw.closed()
