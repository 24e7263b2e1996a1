"""Where a stream's first micro-batch begins, however often Spark asks for it.

Spark keeps the end of a micro-batch and not its beginning: that of the first one is asked for when
the batch is planned, again when it is run, and again when it is run again after a restart.
"""

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from strom.spark.failure import DataLossError
from strom.spark.options import ReadOptions
from strom.spark.reader import StreamReader
from tests.spark.topics import Topics

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def topics():
    from strom.testing.broker import LocalBroker

    with LocalBroker() as running:
        yield Topics(running.bootstrap)


def reader(topics, topic, **options):
    given = {"kafka.bootstrap.servers": topics.bootstrap, "subscribe": topic, **options}
    return StreamReader(ReadOptions.parse(given, streaming=True))


def ranges(stream, start, end):
    return [(each.value.start, each.value.end) for each in stream.partitions(start, end)]


def end_after(stream, start):
    return stream.latestOffset(start, stream.getDefaultReadLimit())


def test_what_comes_in_between_two_questions_is_not_passed_over(topic, topics):
    topics.fill(topic, [b"old"] * 5)
    stream = reader(topics, topic)
    planned_from = stream.initialOffset()
    topics.fill(topic, [b"new"] * 3)
    end = end_after(stream, planned_from)
    topics.fill(topic, [b"later"] * 4)
    assert ranges(stream, stream.initialOffset(), end) == [(5, 8)]
    assert ranges(stream, end, end_after(stream, end)) == [(8, 12)]


def test_a_first_micro_batch_begins_where_it_did_after_a_restart(topic, topics):
    topics.fill(topic, [b"old"] * 5)
    stream = reader(topics, topic)
    end = end_after(stream, stream.initialOffset())
    topics.fill(topic, [b"later"] * 4)
    again = reader(topics, topic)
    assert ranges(again, again.initialOffset(), end) == []
    assert ranges(again, end, end_after(again, end)) == [(5, 9)]


def test_what_retention_takes_before_a_first_micro_batch_runs_again_is_told(topics):
    from confluent_kafka import TopicPartition

    topic = topics.make()
    topics.fill(topic, [b"old"] * 5)
    stream = reader(topics, topic, startingOffsets="earliest")
    end = end_after(stream, stream.initialOffset())
    topics.admin.delete_records([TopicPartition(topic, 0, 3)])[TopicPartition(topic, 0, 3)].result()
    again = reader(topics, topic, startingOffsets="earliest")
    (task,) = again.partitions(again.initialOffset(), end)
    with pytest.raises(DataLossError, match="offsets 0 to 2 are gone"):
        list(again.read(task))


def test_where_nothing_is_new_nothing_is_begun(topic, topics):
    topics.fill(topic, [b"old"] * 5)
    stream = reader(topics, topic, startingOffsets="earliest")
    end = end_after(stream, stream.initialOffset())
    assert end_after(stream, end) == end


@pytest.mark.parametrize("by_pattern", [False, True])
def test_a_stream_whose_only_topic_is_deleted_waits_for_it_to_come_back(
    topic, topics, caplog, by_pattern
):
    """Its next question ended the query for good: there was no offset to commit."""
    topics.fill(topic, [b"old"] * 5)
    how = {"startingOffsets": "earliest", "failOnDataLoss": "false"}
    stream = reader(topics, topic, **how)
    if by_pattern:
        given = {"kafka.bootstrap.servers": topics.bootstrap, "subscribePattern": topic, **how}
        stream = StreamReader(ReadOptions.parse(given, streaming=True))
    end = end_after(stream, stream.initialOffset())
    topics.delete(topic)
    without = end_after(stream, end)
    assert ranges(stream, end, without) == []
    assert f"Topic {topic} was deleted" in caplog.text
    assert end_after(stream, without) == without
    topics.make(name=topic)
    topics.fill(topic, [b"new"] * 3)
    assert ranges(stream, without, end_after(stream, without)) == [(0, 3)]
