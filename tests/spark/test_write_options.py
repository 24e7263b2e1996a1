"""Every option of a write is honoured, or told to have no effect, or refused by its name."""

import pytest

from strom.records.compression import Codec
from strom.spark.directions import READING_ONLY
from strom.spark.failure import OptionError
from strom.spark.write_options import (
    PRODUCER_SETTINGS,
    REFUSED_SETTINGS,
    WITHOUT_EFFECT,
    WriteOptions,
)

SERVERS = {"kafka.bootstrap.servers": "localhost:9092, [::1]:9093"}


def parsed(streaming=False, **options):
    named = {name.replace("_", "."): value for name, value in options.items()}
    return WriteOptions.parse(SERVERS | named, streaming=streaming)


def refused(streaming=False, others=frozenset(), **options):
    named = {name.replace("_", "."): value for name, value in options.items()}
    with pytest.raises(OptionError) as error:
        WriteOptions.parse(SERVERS | named, streaming=streaming, others=others)
    return str(error.value)


def test_what_is_given_is_what_is_done():
    """PRO-09, PRO-10, PRO-11, PRO-13."""
    found = parsed(
        topic="rides",
        kafka_compression_type="zstd",
        kafka_compression_zstd_level="7",
        kafka_batch_size="1000",
        kafka_buffer_memory="5000",
        kafka_delivery_timeout_ms="9",
        kafka_request_timeout_ms="8",
    )
    assert found.topic == "rides"
    assert found.connection.bootstrap == (("localhost", 9092), ("::1", 9093))
    assert (found.delivery.codec, found.delivery.codec_level) == (Codec.ZSTD, 7)
    assert (found.delivery.batch_bytes, found.delivery.buffer_bytes) == (1000, 5000)
    assert (found.delivery.timeout_ms, found.connection.request_timeout_ms) == (9, 8)


def test_streams_are_written_exactly_once_and_batches_are_not():
    """STR-13."""
    assert parsed(streaming=True).exactly_once
    assert not parsed(streaming=True, exactlyOnce="false").exactly_once
    assert not parsed().exactly_once
    assert "'transactionalIdPrefix': another one for each" in refused(exactlyOnce="true")
    assert parsed(exactlyOnce="true", transactionalIdPrefix="totals").exactly_once


def test_names_are_known_in_any_case():
    assert parsed(streaming=True, EXACTLYONCE="false", TransactionalIdPrefix="sink").id_prefix == (
        "sink"
    )


@pytest.mark.parametrize("setting", sorted(WITHOUT_EFFECT))
def test_a_setting_without_effect_is_told(setting):
    found = WriteOptions.parse(SERVERS | {f"kafka.{setting}": "1"}, streaming=False)
    assert [f"'kafka.{setting}' has no effect" in each for each in found.warnings] == [True]


@pytest.mark.parametrize("setting", [*sorted(REFUSED_SETTINGS), "ssl.key.password", "sasl.jaas"])
def test_a_setting_that_cannot_be_had_is_refused_by_name(setting):
    with pytest.raises(OptionError, match=f"'kafka.{setting}' is not supported"):
        WriteOptions.parse(SERVERS | {f"kafka.{setting}": "x"}, streaming=False)


def test_no_setting_is_in_two_tables():
    tables = [*PRODUCER_SETTINGS, *WITHOUT_EFFECT, *REFUSED_SETTINGS]
    assert len(tables) == len(set(tables))


def test_an_unknown_name_is_refused_with_the_nearest():
    assert "Did you mean 'topic'?" in refused(topics="x")
    assert "Did you mean 'kafka.batch.size'?" in refused(kafka_batchsize="1")
    assert "Unknown option 'subscribe'" in refused(subscribe="x")


def test_what_is_for_reads_has_no_effect_and_says_so():
    def told(**options):
        return WriteOptions.parse(SERVERS | options, streaming=True, others=READING_ONLY).warnings

    assert told(topic="x", startingOffsets="earliest") == (
        "Option 'startingoffsets' has no effect: it is for reads.",
    )
    assert "'kafka.isolation.level'" in told(**{"kafka.isolation.level": "read_committed"})[0]
    # A view is read and written.
    assert told(topic="x", subscribe="x", startingOffsets="earliest") == ()


def test_more_in_flight_than_a_broker_can_order_is_cut_and_told():
    assert parsed(kafka_max_in_flight_requests_per_connection="5").warnings == ()
    found = parsed(kafka_max_in_flight_requests_per_connection="6")
    assert found.delivery.in_flight_max == 5
    (told,) = found.warnings
    assert "per.connection' = 6 is taken as 5" in told


def test_what_spark_is_told_is_left_to_spark():
    found = parsed(streaming=True, checkpointLocation="/tmp/here", queryName="rides")
    assert found.warnings == ()


def test_a_wrong_value_is_told():
    assert "one of none, gzip" in refused(kafka_compression_type="rar")
    assert "whole number, not 'many'" in refused(kafka_batch_size="many")
    assert "at least 0, not -1" in refused(kafka_batch_size="-1")
    assert f"at most {2**31 - 1}" in refused(kafka_delivery_timeout_ms=str(2**31))
    assert f"at most {2**31 - 1}" in refused(kafka_transaction_timeout_ms=str(2**31))
    assert "'kafka.client.id' has at most" in refused(kafka_client_id="x" * 2**15)
    assert "gzip.level' is at most 9" in refused(
        kafka_compression_type="gzip", kafka_compression_gzip_level="10"
    )
    assert "true or false, not 'yes'" in refused(streaming=True, exactlyOnce="yes")
    assert "PLAINTEXT listener" in refused(kafka_security_protocol="SSL")
    assert "is missing" in refused(kafka_bootstrap_servers="")
