"""Settings that are said to be used, each with what it changes."""

import pytest

from strom.testing.broker import LocalBroker
from tests.broker.api.conftest import create, produce
from tests.conformance.batches import Producer, batch
from tests.conformance.raw import Raw
from tests.patience import is_done, until, until_coordinated

TEXT = b"".join(b"%d " % (n * n % 977) for n in range(20_000))


def code_of_unknown_topic(raw):
    asked = {"topics": [{"name": "t"}], "allow_auto_topic_creation": True}
    (found,) = raw.ask("metadata", 12, asked)["topics"]
    return found["error_code"]


def code_of_deletion(raw):
    create(raw, "t")
    asked = {"topics": [{"name": "t"}], "timeout": 30_000}
    (found,) = raw.ask("delete_topics", 6, asked)["responses"]
    return found["error_code"]


def code_of_creation(raw):
    wanted = {"name": "t", "num_partitions": -1, "replication_factor": -1}
    (made,) = raw.ask("create_topics", 7, {"topics": [wanted], "timeout": 30_000})["topics"]
    return made["error_code"]


def fetch(raw, **asked):
    place = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    wanted = {"max_bytes": 1 << 20, "topics": [{"topic": "t", "partitions": [place]}]}
    return raw.ask("fetch", 11, wanted | asked)


def batches_in_an_answer(raw):
    create(raw, "t", partitions=1)
    for _ in range(2):
        produce(raw, "t", batch([bytes(2000)]))
    (found,) = fetch(raw)["responses"][0]["partitions"]
    return len(found["records"]) // 2000


def has_session(raw):
    create(raw, "t", partitions=1)
    return fetch(raw, session_id=0, session_epoch=0)["session_id"] != 0


def partitions_in_a_page(raw):
    create(raw, "t", partitions=5)
    asked = {"topics": [{"name": "t"}], "response_partition_limit": 2000}
    (found,) = raw.ask("describe_topic_partitions", 0, asked)["topics"]
    return len(found["partitions"])


def recompressed_bytes(raw):
    create(raw, "t", partitions=1, compression_type="gzip")
    produce(raw, "t", batch([TEXT]))
    (found,) = fetch(raw)["responses"][0]["partitions"]
    return len(found["records"])


def producers_known(raw):
    """How many producers are known in the end."""
    create(raw, "t", partitions=1)
    produce(raw, "t", batch([b"x"], producer=Producer(5, 0, 0)))
    asked = {"topics": [{"name": "t", "partition_indexes": [0]}]}
    until(
        lambda: raw.ask("describe_producers", 0, asked)["topics"][0]["partitions"],
        lambda found: not found[0]["active_producers"],
    )
    return 0


def ids_known(raw):
    """How many transactional ids are known in the end, if nobody uses them."""
    asked = {"transactional_id": "unused", "transaction_timeout": 60_000}
    until_coordinated(raw, "unused", 1)
    until(lambda: raw.ask("init_producer_id", 4, asked), is_done)
    until(lambda: raw.ask("list_transactions", 0, {}), lambda told: not told["transaction_states"])
    return 0


def answer(ask, settings):
    with LocalBroker(settings) as local, Raw(local.bootstrap) as raw:
        return ask(raw)


@pytest.mark.parametrize(
    ("ask", "settings", "expected"),
    [
        (code_of_unknown_topic, "auto.create.topics.enable=false", "unknown_topic_or_partition"),
        (code_of_deletion, "delete.topic.enable=true", "none"),
        (code_of_deletion, "delete.topic.enable=false", "topic_deletion_disabled"),
        (code_of_creation, "default.replication.factor=1", "none"),
        (code_of_creation, "default.replication.factor=2", "invalid_replication_factor"),
        (batches_in_an_answer, "fetch.max.bytes=57671680", 2),
        (batches_in_an_answer, "fetch.max.bytes=1024", 1),
        (has_session, "max.incremental.fetch.session.cache.slots=1", True),
        (has_session, "max.incremental.fetch.session.cache.slots=0", False),
        (partitions_in_a_page, "max.request.partition.size.limit=5", 5),
        (partitions_in_a_page, "max.request.partition.size.limit=2", 2),
        (
            producers_known,
            "producer.id.expiration.ms=1,producer.id.expiration.check.interval.ms=1",
            0,
        ),
        (
            ids_known,
            "transactional.id.expiration.ms=1,"
            "transaction.remove.expired.transaction.cleanup.interval.ms=1",
            0,
        ),
        (
            # The delay is for the files' sake: producers are looked at by their own interval.
            producers_known,
            "producer.id.expiration.ms=1,producer.id.expiration.check.interval.ms=1,"
            "log.initial.task.delay.ms=86400000",
            0,
        ),
    ],
)
def test_a_setting_does_what_it_says(ask, settings, expected):
    given = dict(each.split("=") for each in settings.split(","))
    assert answer(ask, given) == expected


def test_a_level_of_compression_makes_a_difference():
    fast, small = (answer(recompressed_bytes, {"compression.gzip.level": level}) for level in "19")
    assert small < fast
