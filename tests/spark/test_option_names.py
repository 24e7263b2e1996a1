"""Every option of Spark's connector is honoured, or has no effect and says so, or is refused."""

import pytest

from strom.spark.directions import READING_ONLY
from strom.spark.failure import OptionError
from strom.spark.option_names import (
    CONSUMER_SETTINGS,
    REFUSED_SETTINGS,
    SOURCE_OPTIONS,
    WITHOUT_EFFECT,
    check_option,
)
from strom.spark.write_options import WriteOptions

#: As the manual and the source of Spark's connector have them.
OF_THE_CONNECTOR = """
    assign subscribe subscribePattern startingTimestamp startingOffsetsByTimestamp startingOffsets
    startingOffsetsByTimestampStrategy endingTimestamp endingOffsetsByTimestamp endingOffsets
    failOnDataLoss kafkaConsumer.pollTimeoutMs fetchOffset.numRetries fetchOffset.retryIntervalMs
    maxOffsetsPerTrigger minOffsetsPerTrigger maxTriggerDelay minPartitions maxRecordsPerPartition
    groupIdPrefix includeHeaders kafka.group.id kafka.bootstrap.servers
"""
#: As Kafka's own clients tell them, 3.9 (the connector's) and 4.3, without TLS and SASL.
OF_CONSUMERS = """
    allow.auto.create.topics auto.commit.interval.ms auto.include.jmx.reporter auto.offset.reset
    bootstrap.servers check.crcs client.dns.lookup client.id client.rack config.providers
    connections.max.idle.ms default.api.timeout.ms enable.auto.commit enable.metrics.push
    exclude.internal.topics fetch.max.bytes fetch.max.wait.ms fetch.min.bytes group.id
    group.instance.id group.protocol group.remote.assignor heartbeat.interval.ms
    interceptor.classes isolation.level key.deserializer max.partition.fetch.bytes
    max.poll.interval.ms max.poll.records metadata.max.age.ms
    metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy metric.reporters
    metrics.num.samples metrics.recording.level metrics.sample.window.ms
    partition.assignment.strategy receive.buffer.bytes reconnect.backoff.max.ms
    reconnect.backoff.ms request.timeout.ms retry.backoff.max.ms retry.backoff.ms
    security.protocol security.providers send.buffer.bytes session.timeout.ms
    share.acknowledgement.mode share.acquire.mode socket.connection.setup.timeout.max.ms
    socket.connection.setup.timeout.ms value.deserializer
"""
OF_PRODUCERS = """
    acks auto.include.jmx.reporter batch.size bootstrap.servers buffer.memory client.dns.lookup
    client.id compression.gzip.level compression.lz4.level compression.type
    compression.zstd.level config.providers connections.max.idle.ms delivery.timeout.ms
    enable.idempotence enable.metrics.push interceptor.classes key.serializer linger.ms
    max.block.ms max.in.flight.requests.per.connection max.request.size metadata.max.age.ms
    metadata.max.idle.ms metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy
    metric.reporters metrics.num.samples metrics.recording.level metrics.sample.window.ms
    partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms
    partitioner.class partitioner.ignore.keys receive.buffer.bytes reconnect.backoff.max.ms
    reconnect.backoff.ms request.timeout.ms retries retry.backoff.max.ms retry.backoff.ms
    security.protocol security.providers send.buffer.bytes
    socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
    transaction.timeout.ms transaction.two.phase.commit.enable transactional.id value.serializer
"""


@pytest.mark.parametrize("name", OF_THE_CONNECTOR.split())
def test_every_option_of_the_connector_is_honoured(name):
    assert check_option(name.lower()) is None


@pytest.mark.parametrize("name", OF_CONSUMERS.split())
def test_every_setting_of_a_consumer_is_known(name):
    try:
        check_option(f"kafka.{name}")
    except OptionError as error:
        assert f"'kafka.{name}' is not supported: " in str(error)


@pytest.mark.parametrize("name", ["topic", "includeHeaders"])
def test_every_option_of_the_connector_for_writes_is_taken(name):
    given = {"kafka.bootstrap.servers": "one:9092", name: "true"}
    WriteOptions.parse(given, streaming=False, others=READING_ONLY)


@pytest.mark.parametrize("name", OF_PRODUCERS.split())
def test_every_setting_of_a_producer_is_known(name):
    given = {"kafka.bootstrap.servers": "one:9092", f"kafka.{name}": "1"}
    try:
        WriteOptions.parse(given, streaming=False)
    except OptionError as error:
        assert "Unknown" not in str(error)


@pytest.mark.parametrize("name", SOURCE_OPTIONS)
def test_str_02_every_option_of_the_source_is_taken(name):
    assert check_option(name.lower()) is None


@pytest.mark.parametrize("name", CONSUMER_SETTINGS)
def test_settings_that_mean_the_same_are_taken(name):
    assert check_option(f"kafka.{name}") is None


@pytest.mark.parametrize("name", WITHOUT_EFFECT)
def test_what_has_nothing_to_act_upon_says_why(name):
    assert check_option(f"kafka.{name}") == WITHOUT_EFFECT[name]


@pytest.mark.parametrize("name", REFUSED_SETTINGS)
def test_what_cannot_be_had_is_refused_by_its_name(name):
    with pytest.raises(OptionError, match=f"'kafka.{name}' is not supported"):
        check_option(f"kafka.{name}")


@pytest.mark.parametrize("name", ["kafka.ssl.keystore.location", "kafka.sasl.mechanism"])
def test_whole_families_are_refused(name):
    with pytest.raises(OptionError, match="PLAINTEXT"):
        check_option(name)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("startingoffset", "startingOffsets"),
        ("maxoffsetpertrigger", "maxOffsetsPerTrigger"),
        ("kafka.bootstrap.server", "kafka.bootstrap.servers"),
        ("bootstrap.servers", "kafka.bootstrap.servers"),
        ("kafka.isolation.levle", "kafka.isolation.level"),
    ],
)
def test_an_unknown_name_is_told_the_nearest(wrong, right):
    with pytest.raises(OptionError, match=f"Did you mean '{right}'"):
        check_option(wrong)


def test_a_name_like_no_other_is_refused_without_a_guess():
    with pytest.raises(OptionError, match=r"Unknown option 'xyzzy'\.$"):
        check_option("xyzzy")


def test_options_that_somebody_else_honours_are_left_to_them():
    assert check_option("topic", others=frozenset({"topic"})) is None
