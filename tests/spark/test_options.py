"""Options become values, and what is wrong with one is said by its name."""

import pytest

from strom.spark.directions import WRITING_ONLY
from strom.spark.failure import OptionError
from strom.spark.given import parse_servers
from strom.spark.limits import AT_EARLIEST, AT_LATEST, ByOffset, ByTime, NoMatch
from strom.spark.options import ReadOptions

NEEDED = {"kafka.bootstrap.servers": "one:9092", "subscribe": "rides"}


def parse(streaming=False, **options):
    named = {name.replace("__", "."): value for name, value in options.items()}
    return ReadOptions.parse({**NEEDED, **named}, streaming=streaming)


def test_names_are_of_any_case():
    options = ReadOptions.parse(
        {"KAFKA.bootstrap.SERVERS": "one:9092", "SubScribe": "rides", "FAILONDATALOSS": "False"},
        streaming=False,
    )
    assert options.subscription.topics == ("rides",)
    assert not options.fails_on_data_loss


def test_a_batch_reads_all_and_a_stream_what_is_new():
    assert parse().starting == AT_EARLIEST
    assert parse().ending == AT_LATEST
    assert parse(streaming=True).starting == AT_LATEST


def test_topics_are_a_list():
    assert parse(subscribe=" a, b ,,c").subscription.topics == ("a", "b", "c")


def test_partitions_are_assigned_by_json():
    options = ReadOptions.parse(
        {"kafka.bootstrap.servers": "one:9092", "assign": '{"a": [0, 2]}'}, streaming=False
    )
    assert options.subscription.assigned == {("a", 0), ("a", 2)}
    assert str(options.subscription) == "assign a-0, a-2"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("earliest", AT_EARLIEST),
        (" Latest ", AT_LATEST),
        ('{"a": {"0": 23, "1": -2}}', ByOffset(None, {("a", 0): 23, ("a", 1): -2})),
    ],
)
def test_where_a_stream_begins(text, expected):
    assert parse(streaming=True, startingOffsets=text).starting == expected


def test_a_time_goes_before_offsets_and_one_for_all_before_one_each():
    both = {"startingOffsetsByTimestamp": '{"a": {"0": 5}}', "startingOffsets": "latest"}
    assert parse(streaming=True, **both).starting == ByTime(None, {("a", 0): 5}, NoMatch.ERROR)
    every = parse(streaming=True, startingTimestamp="7", **both)
    assert every.starting == ByTime(7, {}, NoMatch.ERROR)
    latest = parse(startingTimestamp="7", startingOffsetsByTimestampStrategy="LATEST")
    assert latest.starting == ByTime(7, {}, NoMatch.LATEST)


def test_an_end_by_time_that_nothing_reaches_is_the_end():
    assert parse(endingTimestamp="7").ending == ByTime(7, {}, NoMatch.LATEST)


@pytest.mark.parametrize(("text", "delay_ms"), [("15m", 900_000), ("30s", 30_000), ("250", 250)])
def test_times_have_units(text, delay_ms):
    assert parse(streaming=True, maxTriggerDelay=text).max_trigger_delay_ms == delay_ms


def test_servers_may_be_of_ipv6():
    assert parse_servers("a:1, [::1]:2") == (("a", 1), ("::1", 2))
    assert parse(kafka__bootstrap__servers="[::1]:2").connection.servers == "[::1]:2"


def test_a_batch_says_which_options_are_for_streams():
    assert "maxOffsetsPerTrigger" in parse(maxOffsetsPerTrigger="5").warnings[0]
    assert "max.poll.records" in parse(kafka__max__poll__records="5").warnings[0]


@pytest.mark.parametrize(
    "name",
    ["kafka.group.id", "groupIdPrefix", "fetchOffset.numRetries", "fetchOffset.retryIntervalMs"],
)
def test_a_batch_commits_nothing_and_looks_once_and_says_so(name):
    given = {**NEEDED, name: "5"}
    (told,) = ReadOptions.parse(given, streaming=False).warnings
    assert f"'{name}' has no effect: a batch read" in told
    assert ReadOptions.parse(given, streaming=True).warnings == ()


def test_what_is_for_writes_has_no_effect_and_says_so():
    def told(**options):
        given = {**NEEDED, "kafka.compression.type": "lz4", **options}
        return ReadOptions.parse(given, streaming=True, others=WRITING_ONLY).warnings

    assert told() == ("Option 'kafka.compression.type' has no effect: it is for writes.",)
    # A view is read and written.
    assert told(topic="rides") == ()


@pytest.mark.parametrize(
    ("streaming", "options", "words"),
    [
        (False, {"startingOffsets": "latest"}, "cannot be latest in a batch"),
        (False, {"startingOffsets": '{"a":{"0":-1}}'}, "of a-0 cannot be latest"),
        (False, {"endingOffsets": "earliest"}, "cannot be earliest in a batch"),
        (False, {"startingOffsets": "middle"}, "earliest, latest or a JSON object"),
        (False, {"startingOffsets": '{"a":{"0":'}, "no JSON"),
        (False, {"startingOffsets": '{"a":[0]}'}, "'a' needs"),
        (False, {"startingOffsets": '{"a":{"0":-3}}'}, "-3 is no offset"),
        (False, {"startingOffsets": '{"a":{"x":1}}'}, "no number of a partition"),
        (False, {"startingOffsetsByTimestamp": '{"a":{"0":-1}}'}, "milliseconds since 1970"),
        (False, {"startingTimestamp": "yesterday"}, "milliseconds since 1970"),
        (False, {"startingTimestamp": "-1"}, "milliseconds since 1970"),
        (False, {"endingTimestamp": str(2**63)}, "milliseconds since 1970"),
        (True, {"startingOffsets": "{}"}, "'startingOffsets' names no partition"),
        (False, {"endingOffsets": '{"a":{}}'}, "'endingOffsets' names no partition"),
        (False, {"startingOffsetsByTimestamp": "{}"}, "ByTimestamp' names no partition"),
        (False, {"endingOffsets": f'{{"a":{{"0":{2**63}}}}}'}, "is no offset"),
        (False, {"startingOffsetsByTimestampStrategy": "guess"}, "is error or latest"),
        (True, {"endingOffsets": "latest"}, "a stream has no end"),
        (True, {"endingTimestamp": "5"}, "a stream has no end"),
        (False, {"assign": '{"a":[0]}'}, "not assign and subscribe"),
        (False, {"subscribe": " , "}, "names no topic"),
        (False, {"subscribe": ""}, "is empty"),
        (False, {"minPartitions": "0"}, "must be positive"),
        (False, {"maxRecordsPerPartition": "-1"}, "must be positive"),
        (False, {"minPartitions": "few"}, "is a whole number"),
        (False, {"failOnDataLoss": "maybe"}, "is true or false"),
        (True, {"maxTriggerDelay": "soon"}, "is a time such as"),
        (True, {"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "5"}, "is more than"),
        (False, {"kafka.isolation.level": "serializable"}, "read_committed or read_uncommitted"),
        (False, {"kafka.security.protocol": "SSL"}, "PLAINTEXT"),
        (False, {"kafka.bootstrap.servers": "nohost"}, "'nohost' is not HOST:PORT"),
        (False, {"kafka.bootstrap.servers": ""}, "is missing"),
        (False, {"kafka.bootstrap.servers": " , "}, "is missing"),
        (False, {"kafka.bootstrap.servers": "host:65536"}, "'host:65536' is not HOST:PORT"),
        (False, {"kafka.bootstrap.servers": "host:²"}, "'host:²' is not HOST:PORT"),
        # What no request can say, nor a socket wait for.
        (False, {"kafka.max.partition.fetch.bytes": str(2**31)}, "fetch.bytes' is at most"),
        (False, {"kafka.fetch.max.bytes": str(2**31)}, "max.bytes' is at most"),
        (False, {"kafka.fetch.min.bytes": str(2**31)}, "min.bytes' is at most"),
        (False, {"kafka.fetch.max.wait.ms": str(2**31)}, "wait.ms' is at most"),
        (False, {"kafka.request.timeout.ms": str(2**31)}, "timeout.ms' is at most"),
        (False, {"kafka.receive.buffer.bytes": str(2**31)}, "buffer.bytes' is at most"),
        (False, {"kafka.client.id": "x" * 2**15}, "client.id' has at most 32767 bytes"),
        (True, {"maxOffsetsPerTrigger": str(2**63)}, "is a whole number"),
        (True, {"maxOffsetsPerTrigger": "1_000"}, "is a whole number"),
    ],
)
def test_what_is_wrong_is_said(streaming, options, words):
    with pytest.raises(OptionError, match=words):
        ReadOptions.parse({**NEEDED, **options}, streaming=streaming)


def test_something_has_to_be_subscribed_to():
    with pytest.raises(OptionError, match="what is to be read"):
        ReadOptions.parse({"kafka.bootstrap.servers": "one:9092"}, streaming=False)


@pytest.mark.parametrize(
    ("pattern", "words"),
    [("a(", "is no pattern"), ("[a-z&&[^b]]+", "only Java"), ("[a-c[x-z]]+", "only Java")],
)
def test_a_pattern_has_to_be_one_and_the_same_in_java(pattern, words):
    given = {"kafka.bootstrap.servers": "one:9092", "subscribePattern": pattern}
    with pytest.raises(OptionError, match=words):
        ReadOptions.parse(given, streaming=False)


@pytest.mark.parametrize("pattern", ["rides-[0-9]+", "[a-c][x-z]+", r"a\.b|[^_].*"])
def test_a_pattern_may_have_sets(pattern):
    given = {"kafka.bootstrap.servers": "one:9092", "subscribePattern": pattern}
    assert ReadOptions.parse(given, streaming=False).subscription.pattern == pattern


def test_a_time_may_be_as_long_as_java_has_it():
    """Who wants to wait for ever says it so."""
    longest = {"kafkaConsumer.pollTimeoutMs": str(2**63 - 1), "kafka.retry.backoff.ms": "5"}
    found = ReadOptions.parse({**NEEDED, **longest}, streaming=False)
    assert found.connection.patience_ms == 2**63 - 1
