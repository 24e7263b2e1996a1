"""Ranges of partitions read without Spark: what librdkafka reads, whatever is in the way."""

import dataclasses

import pytest

from strom.records.columns import Columns
from strom.spark import fetching
from strom.spark.arrow import SCHEMA, SCHEMA_WITH_HEADERS, to_arrow
from strom.spark.failure import DataLossError, OptionError, UnreachableError
from strom.spark.fetching import RangeReader
from strom.spark.options import ReadOptions
from strom.spark.planning import Planner, check_order, report_loss
from strom.spark.task import Task
from tests.spark.topics import Row, Topics

pytestmark = pytest.mark.slow

HEADERS = [None, [("a", b"1"), ("b", None)], [("é", b"")], []]


@pytest.fixture(scope="module")
def broker():
    from strom.testing.broker import LocalBroker

    with LocalBroker() as running:
        yield running


@pytest.fixture(scope="module")
def topics(broker):
    return Topics(broker.bootstrap)


def options_for(topics, topic=None, **options):
    named = {name.replace("__", "."): str(value) for name, value in options.items()}
    base = {"kafka.bootstrap.servers": topics.bootstrap}
    subscribed = {} if topic is None else {"subscribe": topic}
    return ReadOptions.parse({**base, **subscribed, **named}, streaming=False)


def tasks_of(options):
    planner = Planner(options)
    found = planner.subscribed()
    start = planner.resolve(options.starting, found, "startingOffsets")
    end = planner.resolve(options.ending, found, "endingOffsets")
    check_order(start, end)
    return planner.tasks(start, end, found)


def read_task(task, options):
    losses = []

    def lose(what):
        losses.append(what)
        report_loss(what, options.fails_on_data_loss)

    reader = RangeReader(task, options.connection, lose)
    rows = []
    for taken in reader.read(Columns(options.includes_headers)):
        batch = to_arrow(taken, task.place)
        batch.validate(full=True)
        assert batch.schema == (SCHEMA_WITH_HEADERS if options.includes_headers else SCHEMA)
        rows += [row_of(each) for each in batch.to_pylist()]
    return rows, losses


def row_of(each):
    headers = each.get("headers") or ()
    return Row(
        each["topic"],
        each["partition"],
        each["offset"],
        each["key"],
        each["value"],
        round(each["timestamp"].timestamp() * 1000),
        tuple((header["key"], header["value"]) for header in headers),
    )


def read_all(options):
    return sorted(row for task in tasks_of(options) for row in read_task(task, options)[0])


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_msg_12_every_codec_with_nulls_and_headers(topics, codec):
    topic = topics.make(3)
    values = [None if n % 5 == 0 else b"%d" % n * (n % 40) for n in range(1500)]
    keys = [b"key", None, b"", b"x" * 300]
    topics.fill(topic, values, 3, keys, HEADERS, compression_type=codec, linger_ms=20)
    expected = topics.read(topic, 3)
    assert len(expected) == 1500
    assert read_all(options_for(topics, topic, includeHeaders="true")) == expected
    plain = [row._replace(headers=()) for row in expected]
    assert read_all(options_for(topics, topic)) == plain


def test_small_fetches_begin_in_the_middle_of_batches(topic, topics):
    topics.fill(topic, [b"%d" % n * 50 for n in range(400)], linger_ms=50)
    expected = topics.read(topic)
    options = options_for(
        topics,
        topic,
        kafka__max__partition__fetch__bytes=1000,
        maxRecordsPerPartition=7,
    )
    tasks = tasks_of(options)
    assert len(tasks) == 58
    assert read_all(options) == expected


def test_txn_aborted_data_is_seen_by_who_does_not_mind(topics):
    topic = topics.make(2)
    topics.fill(topic, [b"plain"] * 10, 2)
    topics.fill_transaction(topic, [b"gone"] * 10, commits=False, partitions=2)
    topics.fill_transaction(topic, [b"kept"] * 10, commits=True, partitions=2)
    topics.fill(topic, [b"plain"] * 4, 2)
    committed = options_for(topics, topic, kafka__isolation__level="read_committed")
    assert read_all(committed) == topics.read(topic, 2)
    assert len(read_all(committed)) == 24
    everything = read_all(options_for(topics, topic))
    assert everything == topics.read(topic, 2, "read_uncommitted")
    assert len(everything) == 34


def test_an_answer_of_aborted_data_alone_moves_the_reader_on(topic, topics):
    for _ in range(5):
        topics.fill_transaction(topic, [b"gone" * 100] * 10, commits=False)
    topics.fill(topic, [b"kept"])
    options = options_for(
        topics,
        topic,
        kafka__isolation__level="read_committed",
        kafka__max__partition__fetch__bytes=500,
    )
    assert [row.value for row in read_all(options)] == [b"kept"]


def test_offsets_are_where_the_options_say(topics):
    topic = topics.make(2)
    topics.fill(topic, [b"%d" % n for n in range(20)], 2)
    some = options_for(
        topics,
        topic,
        startingOffsets=f'{{"{topic}": {{"0": 3, "1": -2}}}}',
        endingOffsets=f'{{"{topic}": {{"0": 5, "1": -1}}}}',
    )
    assert [(row.partition, row.offset) for row in read_all(some)] == [
        (0, 3),
        (0, 4),
        *((1, n) for n in range(10)),
    ]


def test_only_what_is_assigned_is_read(topics):
    topic = topics.make(3)
    topics.fill(topic, [b"%d" % n for n in range(30)], 3)
    expected = [row for row in topics.read(topic, 3) if row.partition != 1]
    assert read_all(options_for(topics, assign=f'{{"{topic}": [0, 2]}}')) == expected
    with pytest.raises(OptionError, match=f"{topic}-3 does not exist .option 'assign'"):
        read_all(options_for(topics, assign=f'{{"{topic}": [0, 3]}}'))


def test_each_partition_has_its_own_times(topics):
    topic = topics.make(2, retention_ms=-1)
    topics.fill_at(topic, [range(1000, 1010)] * 2)
    some = options_for(
        topics,
        topic,
        startingOffsetsByTimestamp=f'{{"{topic}": {{"0": 1003, "1": 1008}}}}',
        # An end that nothing reaches is the end.
        endingOffsetsByTimestamp=f'{{"{topic}": {{"0": 1005, "1": 2000}}}}',
    )
    found = [(row.partition, row.timestamp_ms) for row in read_all(some)]
    assert found == [(0, 1003), (0, 1004), (1, 1008), (1, 1009)]


def test_times_find_their_offsets(topics):
    topic = topics.make(2)
    topics.fill(topic, [b"%d" % n for n in range(20)], 2)
    rows = topics.read(topic, 2)
    middle = rows[5].timestamp_ms
    found = read_all(options_for(topics, topic, startingTimestamp=middle))
    assert found == [row for row in rows if row.timestamp_ms >= middle]
    before = read_all(options_for(topics, topic, endingTimestamp=middle))
    assert before == [row for row in rows if row.timestamp_ms < middle]
    with pytest.raises(OptionError, match="as new as the time"):
        read_all(options_for(topics, topic, startingTimestamp=2**50))
    latest = {"startingTimestamp": 2**50, "startingOffsetsByTimestampStrategy": "latest"}
    assert read_all(options_for(topics, topic, **latest)) == []


def test_every_partition_has_to_be_named(topics):
    topic = topics.make(2)
    partly = f'{{"{topic}":{{"0":1}}}}'
    with pytest.raises(OptionError, match=r"'endingOffsets' must name every .*-2 its beginning"):
        read_all(options_for(topics, topic, endingOffsets=partly))
    with pytest.raises(OptionError, match=r"'startingOffsetsByTimestamp' must name .*-1\.$"):
        read_all(options_for(topics, topic, startingOffsetsByTimestamp=partly))


@pytest.mark.parametrize("fails", [True, False])
def test_what_was_deleted_before_the_range_is_told(topic, topics, caplog, fails):
    topics.fill(topic, [b"%d" % n for n in range(20)])
    options = options_for(topics, topic, failOnDataLoss=fails)
    (task,) = tasks_of(options)
    partition = _delete_up_to(topics, topic, 12)
    assert partition == 12
    if fails:
        with pytest.raises(DataLossError, match=r"offsets 0 to 11 are gone.*begins at 12"):
            read_task(task, options)
    else:
        rows, losses = read_task(task, options)
        assert [row.offset for row in rows] == list(range(12, 20))
        (loss,) = losses
        assert f"{loss}. Reading goes on without." in caplog.messages


def _delete_up_to(topics, topic, offset):
    from confluent_kafka import TopicPartition

    place = TopicPartition(topic, 0, offset)
    return topics.admin.delete_records([place])[place].result().low_watermark


@pytest.mark.parametrize("anew", [True, False])
def test_a_topic_that_is_gone_is_told(topic, topics, anew):
    topics.fill(topic, [b"v"] * 20)
    options = options_for(topics, topic)
    (task,) = tasks_of(options)
    topics.delete(topic)
    if anew:
        topics.make(1, topic)
        topics.fill(topic, [b"other"] * 30)
    with pytest.raises(DataLossError, match="deleted and made anew" if anew else "was deleted"):
        read_task(task, options)


def test_a_range_beyond_the_end_is_told(topic, topics):
    topics.fill(topic, [b"v"] * 5)
    options = options_for(topics, topic, kafkaConsumer__pollTimeoutMs=1000)
    (task,) = tasks_of(options)
    with pytest.raises(DataLossError, match="offsets 5 to 8 are gone"):
        read_task(task._replace(end=9), options)


def test_a_wrong_leader_is_found_out(topic, topics):
    topics.fill(topic, [b"v"] * 5)
    options = options_for(topics, topic)
    (task,) = tasks_of(options)
    for leader in (None, ("127.0.0.1", 1)):
        rows, losses = read_task(task._replace(leader=leader), options)
        assert (len(rows), losses) == (5, [])


def test_a_connection_that_ends_between_two_tasks_is_made_anew(topic, topics):
    topics.fill(topic, [b"v"] * 5)
    options = options_for(topics, topic)
    (task,) = tasks_of(options)
    from strom.spark.link import link_to

    link_to(task.leader, options.connection).close()
    assert len(read_task(task, options)[0]) == 5


def test_a_read_that_is_left_early_leaves_nothing_behind(topic, topics, monkeypatch):
    topics.fill(topic, [b"v" * 500] * 2000, linger_ms=5)
    options = options_for(topics, topic, kafka__max__partition__fetch__bytes=20_000)
    monkeypatch.setattr(fetching, "COLUMNS_BYTES_MAX", 10_000)
    (task,) = tasks_of(options)
    reader = RangeReader(task, options.connection, pytest.fail)
    columns = Columns(False)
    generator = reader.read(columns)
    next(generator)
    # As a LIMIT does: the next answer is on its way.
    generator.close()
    assert len(read_task(task, options)[0]) == 2000


def test_an_unknown_topic_is_named(topics):
    with pytest.raises(OptionError, match="Topic nowhere does not exist"):
        tasks_of(options_for(topics, "nowhere"))


def test_no_broker_is_said_with_its_address():
    options = ReadOptions.parse(
        {
            "kafka.bootstrap.servers": "127.0.0.1:1",
            "subscribe": "t",
            "kafkaConsumer.pollTimeoutMs": "300",
        },
        streaming=False,
    )
    with pytest.raises(UnreachableError, match=r"broker 127\.0\.0\.1:1"):
        tasks_of(options)


def test_a_pattern_finds_topics_and_no_internal_ones(topics):
    topics.make(1, "pattern-a")
    topics.make(2, "pattern-b")
    options = options_for(topics, "x")
    matching = dataclasses.replace(
        options, subscription=dataclasses.replace(options.subscription, topics=(), pattern="pat.*")
    )
    assert set(Planner(matching).topics()) == {"pattern-a", "pattern-b"}
    assert all(isinstance(task, Task) for task in tasks_of(matching))
