"""Requests that come together are served together, and each is told what became of it."""

import pytest

from strom.broker.api import produce as produce_api
from strom.log.disk import RealFile
from strom.records.batch import read_header
from strom.records.record import Producer
from strom.wire.errors import ErrorCode
from tests.broker.api.conftest import offsets, produce
from tests.conformance.batches import batch
from tests.conformance.raw import Raw
from tests.log.making import batch as produced

COUNT = 4


@pytest.fixture
def writes(monkeypatch):
    """Of how many batches each write of several was."""
    found = []
    write_parts_at = RealFile.write_parts_at

    def note(self, parts, position):
        found.append(len(parts))
        return write_parts_at(self, parts, position)

    monkeypatch.setattr(RealFile, "write_parts_at", note)
    return found


def frame(raw, topic, *batches, acks=-1):
    """A request with a batch for each partition."""
    data = [{"index": index, "records": bytes(each)} for index, each in enumerate(batches)]
    topics = [{"name": topic, "partition_data": data}]
    return raw.encode("produce", 9, {"acks": acks, "timeout": 5000, "topic_data": topics})


def told(raw):
    """What the next answer says of each partition."""
    (answer,) = raw.receive("produce", 9)[1]["responses"]
    return [
        each["base_offset"] if each["error_code"] == "none" else each["error_code"]
        for each in answer["partition_responses"]
    ]


def test_batches_of_requests_that_come_together_are_written_at_once(raw, topic, writes):
    for index in (0, 1):
        produce(raw, topic, batch([b"first"]), index=index)
    frames = [frame(raw, topic, batch([b"a%d" % n]), batch([b"b%d" % n])) for n in range(COUNT)]
    raw.send_bytes(b"".join(frames))
    assert [told(raw) for _ in frames] == [[1 + n, 1 + n] for n in range(COUNT)]
    assert writes == [COUNT, COUNT]


def test_who_asks_in_between_sees_what_was_sent_before(raw, topic, writes):
    produce(raw, topic, batch([b"first"]))
    asked = {"replica_id": -1, "topics": [{"name": topic, "partitions": [LATEST]}]}
    listed = raw.encode("list_offsets", 7, asked)
    sent = [frame(raw, topic, batch([b"%d" % n])) for n in range(2)]
    raw.send_bytes(sent[0] + sent[1] + listed + sent[0] + listed)
    assert [told(raw), told(raw)] == [[1], [2]]
    assert end_told(raw) == 3
    assert told(raw) == [3]
    assert end_told(raw) == 4
    assert writes == [2]


LATEST = {"partition_index": 0, "timestamp": -1}


def end_told(raw):
    (answer,) = raw.receive("list_offsets", 7)[1]["topics"]
    return answer["partitions"][0]["offset"]


def test_what_is_refused_among_others_holds_none_of_them_back(raw, topic):
    produce(raw, topic, batch([b"first"]))
    wrong = bytearray(batch([b"wrong"]))
    wrong[-1] ^= 1
    raw.send_bytes(
        b"".join(frame(raw, topic, each) for each in (batch([b"a"]), wrong, batch([b"b"])))
    )
    assert [told(raw) for _ in range(3)] == [[1], ["corrupt_message"], [2]]


def test_sequences_are_those_of_the_order_in_which_they_came(raw, topic):
    produce(raw, topic, batch([b"first"]))
    numbers = [0, 1, 1, 3, 2]
    sent = [produced(b"v", producer=Producer(4711, 0, number)) for number in numbers]
    raw.send_bytes(b"".join(frame(raw, topic, each) for each in sent))
    answers = [told(raw) for _ in numbers]
    assert answers == [[1], [2], [2], ["out_of_order_sequence_number"], [3]]


def test_one_without_an_answer_is_written_in_its_place(raw, topic):
    produce(raw, topic, batch([b"first"]))
    frames = [frame(raw, topic, batch([b"%d" % n]), acks=acks) for n, acks in enumerate((1, 0, -1))]
    raw.send_bytes(b"".join(frames))
    assert [told(raw), told(raw)] == [[1], [3]]


def test_a_refused_one_without_an_answer_ends_the_connection_between_the_others(raw, topic, broker):
    produce(raw, topic, batch([b"first"]))
    wrong = bytearray(batch([b"wrong"]))
    wrong[-1] ^= 1
    good = batch([b"good"])
    with Raw(broker.bootstrap) as other:
        sent = frame(other, topic, good), frame(other, topic, wrong, acks=0)
        other.send_bytes(sent[0] + sent[1] + sent[0])
        assert told(other) == [1]
        assert other.closed()
    assert offsets(raw, topic, 1) == {0: 2}


def test_a_fault_of_ours_leaves_nothing_in_its_place(broker, raw, topic, monkeypatch):
    """What has its place in a log, and no buffer any more, would be written as something else."""
    produce(raw, topic, batch([b"first"]))
    check_field = produce_api.check_field

    def check(records, version):
        header = check_field(records, version)
        if read_header(records).record_count == 3:
            raise RuntimeError("a fault of ours")
        return header

    monkeypatch.setattr(produce_api, "check_field", check)
    with Raw(broker.bootstrap) as other:
        good, bad = batch([b"good"]), batch([b"bad"] * 3)
        other.send_bytes(frame(other, topic, good) + frame(other, topic, good, bad))
        assert told(other) == [1]
        assert other.closed()
    assert offsets(raw, topic, 2) == {0: 3, 1: 0}
    assert produce(raw, topic, batch([b"next"])) == 3


def test_a_log_that_cannot_be_written_is_told_to_all(broker, raw, topic, monkeypatch):
    produce(raw, topic, batch([b"first"]))

    def fail(self, parts, position):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RealFile, "write_parts_at", fail)
    frames = [frame(raw, topic, batch([b"%d" % n])) for n in range(COUNT)]
    raw.send_bytes(b"".join(frames))
    storage = ErrorCode.KAFKA_STORAGE_ERROR.name.lower()
    assert [told(raw) for _ in frames] == [[storage]] * COUNT
    monkeypatch.undo()
    raw.send_bytes(b"".join(frames))
    assert [told(raw) for _ in frames] == [[1 + n] for n in range(COUNT)]


@pytest.mark.parametrize("rubbish", [b"\0\0\0\4\0\0\0\0", b"\xff" * 8, b"\0\0\0\2\0\0"])
def test_what_came_before_rubbish_is_written_and_answered(broker, raw, topic, rubbish):
    with Raw(broker.bootstrap) as other:
        frames = [frame(other, topic, batch([b"%d" % n])) for n in range(2)]
        other.send_bytes(frames[0])
        assert told(other) == [0]
        other.send_bytes(frames[0] + frames[1] + rubbish)
        assert [told(other), told(other)] == [[1], [2]]
        assert other.closed()
    assert offsets(raw, topic, 1) == {0: 3}
