"""Fetch: limits, long polls, sessions, and what a deleted topic's id says.

Rows: CON; pitfalls "Fetch".
"""

import time
from uuid import UUID

import pytest

from tests.conformance.batches import batch, headers
from tests.conformance.raw import Raw
from tests.conformance.test_produce import Node
from tests.conformance.transcript import wait_usable
from tests.patience import PATIENCE_SECONDS

MANY = 1 << 24
#: Longer than anybody waits for an answer.
FOR_EVER_MS = 600_000
FULL, FINAL = 0, -1


class Reader(Node):
    """A connection that fetches from one or more topics by id."""

    def topic(self, name, partitions=1):
        new = {"name": name, "num_partitions": partitions, "replication_factor": 1}
        made = self.raw.ask("create_topics", 7, {"topics": [new], "timeout": 10000})
        wait_usable(self.raw, name, partitions)
        return made["topics"][0]["topic_id"]

    def ask(self, wanted, **given):
        """Fetch from [(topic id, partition, offset or (offset, bytes))]; the whole answer."""
        topics = {}
        for topic_id, index, place in wanted:
            offset, limit = place if isinstance(place, tuple) else (place, MANY)
            asked = {"partition": index, "fetch_offset": offset, "partition_max_bytes": limit}
            topics.setdefault(topic_id, []).append({"current_leader_epoch": -1, **asked})
        listed = [{"topic_id": each, "partitions": asked} for each, asked in topics.items()]
        limits = {"max_wait": 0, "min_bytes": 1, "max_bytes": MANY}
        return self.raw.ask("fetch", 17, {**limits, "topics": listed, **given})


@pytest.fixture
def node(either):
    with Raw(either.bootstrap) as raw:
        yield Reader(raw)


@pytest.fixture
def topic_id(node, name):
    """The id of a topic of one partition that has the name of the test."""
    return node.topic(name)


def partitions(answer):
    return [each for topic in answer["responses"] for each in topic["partitions"]]


def fill(node, topic, count, size=1000, index=0):
    for _ in range(count):
        assert node.send(topic, batch([b"x" * size]), index)["error_code"] == "none"


def test_the_first_batch_is_whole_although_over_every_limit(topic_id, node, name):
    fill(node, name, 2, size=5000)
    (got,) = partitions(node.ask([(topic_id, 0, (0, 10))], max_bytes=10))
    assert headers(got["records"])[0].size == len(got["records"]) > 5000


def test_limits_hold_after_the_first_batch(topic_id, node, name):
    fill(node, name, 10)
    size = len(batch([b"x" * 1000]))
    (got,) = partitions(node.ask([(topic_id, 0, (0, 3 * size + 10))]))
    assert len(headers(got["records"])) == 3
    (got,) = partitions(node.ask([(topic_id, 0, 0)], max_bytes=4 * size + 10))
    assert len(headers(got["records"])) == 4


def test_the_limit_of_a_request_goes_round_the_partitions_of_a_session(node, name):
    topic_id = node.topic(name, 3)
    for index in range(3):
        fill(node, name, 1, index=index)
    limit = {"max_bytes": len(batch([b"x" * 1000]))}
    wanted = [(topic_id, n, 0) for n in range(3)]
    session = node.ask(wanted, session_id=0, session_epoch=FULL, **limit)["session_id"]
    # Nobody reads on, so whoever is first has something each time; yet all have their turn.
    turns = [
        [each["partition_index"] for each in partitions(answer) if each["records"]]
        for epoch in range(1, 7)
        for answer in (node.ask([], session_id=session, session_epoch=epoch, **limit),)
    ]
    assert sorted(turns[:3]) == sorted(turns[3:]) == [[0], [1], [2]]


def test_a_fetch_from_the_middle_of_a_batch_gets_it_whole(topic_id, node, name):
    """CON-08."""
    node.send(name, batch([b"a", b"b", b"c"]))
    node.send(name, batch([b"d", b"e"]))
    (got,) = partitions(node.ask([(topic_id, 0, 1)]))
    assert [each.base_offset for each in headers(got["records"])] == [0, 3]
    (got,) = partitions(node.ask([(topic_id, 0, 4)]))
    assert [each.base_offset for each in headers(got["records"])] == [3]


def test_every_answer_tells_the_three_offsets(topic_id, node, name):
    fill(node, name, 3)
    for offset in (0, 3):
        (got,) = partitions(node.ask([(topic_id, 0, offset)]))
        told = got["high_watermark"], got["last_stable_offset"], got["log_start_offset"]
        assert told == (3, 3, 0)


@pytest.mark.parametrize("offset", [-1, 4, 1 << 40])
def test_an_offset_outside_the_log_is_refused(topic_id, node, name, offset):
    fill(node, name, 3)
    (got,) = partitions(node.ask([(topic_id, 0, offset)]))
    assert got["error_code"] == "offset_out_of_range"
    assert not got["records"]


def test_a_partition_that_is_not_there_is_told(topic_id, node, name):
    (got,) = partitions(node.ask([(topic_id, 6, 0)]))
    assert got["error_code"] == "unknown_topic_or_partition"
    (got,) = partitions(node.ask([(UUID(int=0xABCD), 0, 0)]))
    assert got["error_code"] == "unknown_topic_id"


def test_a_deleted_topics_id_stays_unknown_though_the_name_is_back(node, name):
    old = node.topic(name)
    asked = {"topics": [{"name": name}], "timeout": 10000}
    assert node.raw.ask("delete_topics", 6, asked)["responses"][0]["error_code"] == "none"
    code = "none"
    deadline = time.monotonic() + PATIENCE_SECONDS
    while code != "unknown_topic_id" and time.monotonic() < deadline:
        (got,) = partitions(node.ask([(old, 0, 0)]))
        code = got["error_code"]
    new = node.topic(name)
    assert new != old
    (got,) = partitions(node.ask([(old, 0, 0)]))
    assert got["error_code"] == "unknown_topic_id"
    (got,) = partitions(node.ask([(new, 0, 0)]))
    assert got["error_code"] == "none"


def test_a_wrong_leader_epoch_is_told(topic_id, node, name):
    asked = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": MANY}
    listed = [{"topic_id": topic_id, "partitions": [asked | {"current_leader_epoch": 9}]}]
    (got,) = partitions(node.raw.ask("fetch", 17, {"max_wait": 0, "topics": listed}))
    assert got["error_code"] == "unknown_leader_epoch"


def fetch_after(node, topic_id, offset, last_epoch):
    """What somebody is told whose last record was of that epoch."""
    asked = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": MANY}
    epochs = {"current_leader_epoch": -1, "last_fetched_epoch": last_epoch}
    listed = [{"topic_id": topic_id, "partitions": [asked | epochs]}]
    (got,) = partitions(node.raw.ask("fetch", 17, {"max_wait": 0, "topics": listed}))
    return got


def test_who_has_more_of_an_epoch_than_the_leader_is_told_where_it_ends(topic_id, node, name):
    fill(node, name, 3)
    assert fetch_after(node, topic_id, 3, 0)["diverging_epoch"] == {"epoch": -1, "end_offset": -1}
    got = fetch_after(node, topic_id, 4, 0)
    assert got["diverging_epoch"] == {"epoch": 0, "end_offset": 3}
    told = got["high_watermark"], got["last_stable_offset"], got["log_start_offset"]
    assert (got["error_code"], told) == ("none", (3, 3, 0))


def test_an_epoch_that_never_was_is_refused_and_none_is_none(topic_id, node, name):
    fill(node, name, 3)
    assert fetch_after(node, topic_id, 2, 7)["error_code"] == "offset_out_of_range"
    assert fetch_after(node, topic_id, 2, -5)["records"]


def test_a_long_poll_wakes_when_there_are_enough_bytes(topic_id, either, node, name):
    """BRK-09, CON-07, ARC-04."""
    size = len(batch([b"x" * 1000]))
    with Raw(either.bootstrap) as other:
        poll(other, topic_id, min_bytes=2 * size)
        fill(node, name, 2)
        _, answer = other.receive("fetch", 17)
    (got,) = partitions(answer)
    assert len(headers(got["records"])) == 2


def test_nobody_waits_for_more_than_an_answer_may_hold(topic_id, node, name):
    fill(node, name, 2)
    limits = {"max_wait": FOR_EVER_MS, "min_bytes": MANY, "max_bytes": 1000}
    (got,) = partitions(node.ask([(topic_id, 0, 0)], **limits))
    assert len(headers(got["records"])) == 1


def poll(raw, topic_id, min_bytes=1):
    """Ask for what comes; the answer is not waited for."""
    asked = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": MANY}
    listed = [{"topic_id": topic_id, "partitions": [{**asked, "current_leader_epoch": -1}]}]
    limits = {"max_wait": FOR_EVER_MS, "min_bytes": min_bytes, "max_bytes": MANY}
    raw.send("fetch", 17, {**limits, "topics": listed})


def test_a_long_poll_with_nothing_to_tell_ends_when_its_time_is_up(topic_id, node, name):
    begin = time.monotonic()
    answer = node.ask([(topic_id, 0, 0)], max_wait=300)
    assert time.monotonic() - begin >= 0.29
    assert not partitions(answer)[0]["records"]


def test_a_long_poll_holds_up_nobody_else(topic_id, either, node, name):
    with Raw(either.bootstrap) as other:
        poll(other, topic_id)
        for _ in range(20):
            node.raw.ask("metadata", 12, {"topics": [{"name": name}]})
        fill(node, name, 1)
        _, answer = other.receive("fetch", 17)
        assert partitions(answer)[0]["high_watermark"] == 1


def test_a_session_tells_only_what_changed(node, name):
    topic_id = node.topic(name, 3)
    opened = node.ask([(topic_id, n, 0) for n in range(3)], session_id=0, session_epoch=FULL)
    session = opened["session_id"]
    assert session > 0
    assert len(partitions(opened)) == 3
    quiet = node.ask([], session_id=session, session_epoch=1)
    assert (quiet["error_code"], partitions(quiet)) == ("none", [])
    fill(node, name, 1, index=1)
    changed = node.ask([], session_id=session, session_epoch=2)
    assert [each["partition_index"] for each in partitions(changed)] == [1]
    moved = node.ask([(topic_id, 1, 1)], session_id=session, session_epoch=3)
    assert partitions(moved) == []


def forget(topic_id, *indexes):
    return [{"topic_id": topic_id, "partitions": list(indexes)}]


def test_a_session_forgets_and_takes_back(node, name):
    topic_id = node.topic(name, 2)
    opened = node.ask([(topic_id, n, 0) for n in range(2)], session_id=0, session_epoch=FULL)
    session = opened["session_id"]
    gone = {"forgotten_topics_data": forget(topic_id, 0)}
    node.ask([], session_id=session, session_epoch=1, **gone)
    fill(node, name, 1, index=0)
    assert partitions(node.ask([], session_id=session, session_epoch=2)) == []
    back = node.ask([(topic_id, 0, 0)], session_id=session, session_epoch=3)
    assert [each["partition_index"] for each in partitions(back)] == [0]


def test_a_session_ends_with_the_last_of_its_partitions(node, name):
    topic_id = node.topic(name, 1)
    opened = node.ask([], session_id=0, session_epoch=FULL)
    session = opened["session_id"]
    assert session > 0, "one may begin without any"
    added = node.ask([(topic_id, 0, 0)], session_id=session, session_epoch=1)
    assert (added["session_id"], len(partitions(added))) == (session, 1)
    gone = {"forgotten_topics_data": forget(topic_id, 0)}
    left = node.ask([], session_id=session, session_epoch=2, **gone)
    assert (left["error_code"], left["session_id"]) == ("none", 0)
    after = node.ask([], session_id=session, session_epoch=3)
    assert after["error_code"] == "fetch_session_id_not_found"


def test_a_session_checks_its_epoch(topic_id, node, name):
    opened = node.ask([(topic_id, 0, 0)], session_id=0, session_epoch=FULL)
    session = opened["session_id"]
    wrong = node.ask([], session_id=session, session_epoch=5)
    assert wrong["error_code"] == "invalid_fetch_session_epoch"
    unknown = node.ask([], session_id=session + 12345, session_epoch=1)
    assert unknown["error_code"] == "fetch_session_id_not_found"
    closed = node.ask([(topic_id, 0, 0)], session_id=session, session_epoch=FINAL)
    assert (closed["error_code"], closed["session_id"]) == ("none", 0)
    after = node.ask([], session_id=session, session_epoch=1)
    assert after["error_code"] == "fetch_session_id_not_found"


def test_without_a_session_everything_is_told_each_time(node, name):
    topic_id = node.topic(name, 2)
    for _ in range(2):
        answer = node.ask([(topic_id, n, 0) for n in range(2)])
        assert answer["session_id"] == 0
        assert len(partitions(answer)) == 2


@pytest.mark.parametrize("epoch", [FULL, FINAL])
def test_of_a_partition_that_is_named_twice_the_last_counts_in_the_place_of_the_first(
    node, name, epoch
):
    topic_id = node.topic(name, 2)
    fill(node, name, 3)
    wanted = [(topic_id, 0, 0), (topic_id, 1, 0), (topic_id, 0, 2)]
    first, second = partitions(node.ask(wanted, session_epoch=epoch))
    assert (first["partition_index"], second["partition_index"]) == (0, 1)
    assert [each.base_offset for each in headers(first["records"])] == [2]


def test_read_committed_of_plain_records_is_all_of_them(topic_id, node, name):
    fill(node, name, 2)
    (got,) = partitions(node.ask([(topic_id, 0, 0)], isolation_level=1))
    assert len(headers(got["records"])) == 2
    assert got["aborted_transactions"] in (None, [])
