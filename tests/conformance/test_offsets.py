"""Offsets over the wire: committed, told, deleted, in every version and as real clients do it.

Each case is played to Strom and to Apache Kafka, whose answers are in `answers/offsets.json`.
Rows: OFS-01, OFS-02, OFS-03, OFS-04, OFS-06, OFS-07, OFS-13, TOP-06, GRP-02, GRP-18.
"""

import asyncio
from uuid import UUID

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioPartition
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.conformance.batches import batch
from tests.conformance.clients import Confluent, Sent, kafka
from tests.conformance.raw import Raw
from tests.conformance.transcript import check, is_peer, play
from tests.patience import PATIENCE_SECONDS, until, until_coordinated

BUSY = ("coordinator_load_in_progress", "not_coordinator", "coordinator_not_available")
NOWHERE = UUID(int=77)


def ready(talk, group=None):
    """Wait until the group has a coordinator that answers; its id."""
    group = talk.name if group is None else group
    until_coordinated(talk.raw, group)
    asked = {"group_id": group, "topics": None}
    until(
        lambda: talk.raw.ask("offset_fetch", 7, asked), lambda told: told["error_code"] not in BUSY
    )
    return group


def offset(index, committed, metadata="", **more):
    names = {"committed_offset": committed, "committed_metadata": metadata}
    return {"partition_index": index, **names, **more}


def commit(talk, version, *topics, group=None, **who):
    """Commit; a topic is its name or id, and then offsets of partitions."""
    which = "topic_id" if version >= 10 else "name"
    asked = [{which: topic, "partitions": list(offsets)} for topic, *offsets in topics]
    who = {"generation_id_or_member_epoch": -1, "member_id": "", "retention_time": -1, **who}
    group = talk.name if group is None else group
    return talk.ask("offset_commit", version, {"group_id": group, "topics": asked, **who})


def fetch(talk, version, *topics, group=None, **more):
    """Ask for offsets; a topic is its name or id, and then partitions. No topics for all."""
    which = "topic_id" if version >= 10 else "name"
    asked = [{which: topic, "partition_indexes": list(wanted)} for topic, *wanted in topics]
    wanted = {"group_id": talk.name if group is None else group, "topics": asked or None}
    if version >= 8:
        return talk.ask("offset_fetch", version, {"groups": [wanted | more]})
    return talk.ask("offset_fetch", version, wanted | more)


def delete(talk, *topics, group=None):
    asked = [
        {"name": topic, "partitions": [{"partition_index": each} for each in partitions]}
        for topic, *partitions in topics
    ]
    group = talk.name if group is None else group
    return talk.ask("offset_delete", 0, {"group_id": group, "topics": asked})


def by_version(version):
    def case(talk):
        topic_id = talk.create(partitions=3)
        ready(talk)
        topic = topic_id if version >= 10 else talk.topic()
        commit(talk, max(version, 2), (topic, offset(0, 5, "notes"), offset(1, 2**40)))
        commit(talk, max(version, 2), (topic, offset(0, 6, None, committed_leader_epoch=0)))
        fetch(talk, version, (topic, 0, 1, 2, 9))
        if version > 1:
            fetch(talk, version)

    case.__name__ = f"version_{version}"
    return case


def what_does_not_exist_is_refused_one_by_one(talk):
    topic_id = talk.create(partitions=2)
    ready(talk)
    commit(talk, 9, (talk.topic(), offset(0, 1), offset(7, 1)), ("nowhere", offset(0, 1)))
    commit(talk, 10, (topic_id, offset(1, 2), offset(7, 1)), (NOWHERE, offset(0, 1)))
    commit(talk, 9, ("nowhere", offset(0, 1)))
    commit(talk, 9)
    commit(talk, 10, (None, offset(0, 1)))
    fetch(talk, 9, (talk.topic(), 0, 1, 7), ("nowhere", 0))
    fetch(talk, 10, (topic_id, 0, 1, 7), (NOWHERE, 0, 1))
    fetch(talk, 10, (None, 0))


def odd_offsets_are_taken(talk):
    talk.create()
    ready(talk)
    for number in (-1, -77, 2**63 - 1):
        commit(talk, 9, (talk.topic(), offset(0, number)))
        fetch(talk, 9, (talk.topic(), 0))


def metadata_has_a_limit(talk):
    talk.create(partitions=4)
    ready(talk)
    texts = ["x" * 4096, "x" * 4097, "\U0001f600" * 2048, "\U0001f600" * 2049]
    commit(talk, 9, (talk.topic(), *(offset(n, 1, text) for n, text in enumerate(texts))))
    only = [offset(0, 2, "y" * 5000), offset(1, 3)]
    commit(talk, 9, (talk.topic(), *only))


def a_generation_that_nobody_has_is_refused(talk):
    talk.create()
    ready(talk)
    for version in (2, 8, 9, 10):
        topic = talk.topic() if version < 10 else NOWHERE
        who = {"generation_id_or_member_epoch": 3, "member_id": "m"}
        commit(talk, version, (topic, offset(0, 1)), **who)
    commit(talk, 9, (talk.topic(), offset(0, 1)), member_id="anybody")
    commit(talk, 9, (talk.topic(), offset(0, 1)), generation_id_or_member_epoch=0, member_id="m")
    commit(talk, 9, (talk.topic(), offset(0, 1)), group_instance_id="me")


def the_group_without_a_name_has_offsets_too(talk):
    talk.create()
    ready(talk, "")
    commit(talk, 9, (talk.topic(), offset(0, 1)), group="")
    fetch(talk, 9, (talk.topic(), 0), group="")
    delete(talk, (talk.topic(), 0), group="")


def many_groups_are_asked_at_once(talk):
    topic_id = talk.create(partitions=2)
    ready(talk)
    ready(talk, talk.topic("-other"))
    ready(talk, talk.topic("-none"))
    commit(talk, 9, (talk.topic(), offset(0, 1)))
    commit(talk, 9, (talk.topic(), offset(1, 2)), group=talk.topic("-other"))
    which = {"topics": [{"name": talk.topic(), "partition_indexes": [0, 0, 1]}]}
    groups = [talk.name, talk.topic("-other"), talk.topic("-none"), talk.name]
    talk.ask("offset_fetch", 8, {"groups": [{"group_id": each, **which} for each in groups]})
    whole = [{"group_id": each, "topics": None} for each in groups[:3]]
    for version in (8, 9):
        talk.ask("offset_fetch", version, {"groups": whole, "require_stable": True})
    by_id = {"topics": [{"topic_id": topic_id, "partition_indexes": [0]}]}
    nobody = {"group_id": talk.name, "member_id": "nobody", "member_epoch": 4}
    talk.ask("offset_fetch", 10, {"groups": [whole[0], nobody | by_id]})
    talk.ask("offset_fetch", 10, {"groups": []})


def retention_of_old_clients_is_taken(talk):
    talk.create(partitions=3)
    ready(talk)
    for version, index in ((2, 0), (3, 1), (4, 2)):
        who = {"retention_time": 3_600_000}
        commit(talk, version, (talk.topic(), offset(index, 7)), **who)
    fetch(talk, 7)


def single_offsets_are_deleted(talk):
    talk.create(partitions=3)
    ready(talk)
    delete(talk, (talk.topic(), 0))
    delete(talk, ("nowhere", 0))
    commit(talk, 9, (talk.topic(), offset(0, 1), offset(1, 2)))
    delete(talk, (talk.topic(), 0, 2, 9), ("nowhere", 0))
    fetch(talk, 7)
    delete(talk, (talk.topic(), 1))
    delete(talk, (talk.topic(), 1))
    delete(talk)
    fetch(talk, 7)


def offsets_go_with_their_topic(talk):
    talk.create()
    talk.create("-stays")
    ready(talk)
    commit(talk, 9, (talk.topic(), offset(0, 1)), (talk.topic("-stays"), offset(0, 2)))
    talk.raw.ask("delete_topics", 6, {"topics": [{"name": talk.topic()}], "timeout": 10000})
    talk.settle()
    wait_for_topics(talk, [talk.topic("-stays")])
    fetch(talk, 7)
    new_id = talk.create()
    fetch(talk, 10, (new_id, 0))
    fetch(talk, 7, (talk.topic(), 0))


def wait_for_topics(talk, expected):
    """Wait until the group has offsets of these topics only: the coordinator hears of it later."""
    asked = {"group_id": talk.name, "topics": None}
    until(
        lambda: talk.raw.ask("offset_fetch", 7, asked)["topics"],
        lambda told: [each["name"] for each in told] == expected,
    )


def coordinators_are_told_by_version(talk):
    ready(talk)
    for version in range(4):
        talk.ask("find_coordinator", version, {"key": talk.name, "key_type": 0})
    for version in range(4, 7):
        keys = [talk.name, "", "ä\U0001f600"]
        talk.ask("find_coordinator", version, {"coordinator_keys": keys, "key_type": 0})
    for version in (1, 3, 4, 6):
        asked = {"key": "k", "coordinator_keys": ["k"], "key_type": 9}
        talk.ask("find_coordinator", version, asked)
    for key in ("k", "g:x:0", ":AAAAAAAAAAAAAAAAAAAAAA:0", "g:AAAAAAAAAAAAAAAAAAAAAA:x"):
        talk.ask("find_coordinator", 6, {"coordinator_keys": [key], "key_type": 2})
    talk.ask("find_coordinator", 6, {"coordinator_keys": [], "key_type": 0})


def nobody_else_writes_to_the_topic(talk):
    """But for one client, as far as the checks that everybody's records go through."""
    ready(talk)
    for client_id in ("raw", "__admin_client"):
        talk.raw.client_id = client_id
        for index in (0, 77):
            sent = {"index": index, "records": batch([b"no key"])}
            data = [{"name": "__consumer_offsets", "partition_data": [sent]}]
            talk.ask("produce", 9, {"acks": -1, "timeout": 5000, "topic_data": data}, only=codes)


def codes(produced):
    found = [each for topic in produced["responses"] for each in topic["partition_responses"]]
    return [[each["index"], each["error_code"], each["error_message"]] for each in found]


CASES = (
    *(by_version(version) for version in range(1, 11)),
    what_does_not_exist_is_refused_one_by_one,
    odd_offsets_are_taken,
    metadata_has_a_limit,
    a_generation_that_nobody_has_is_refused,
    the_group_without_a_name_has_offsets_too,
    many_groups_are_asked_at_once,
    retention_of_old_clients_is_taken,
    single_offsets_are_deleted,
    offsets_go_with_their_topic,
    coordinators_are_told_by_version,
    nobody_else_writes_to_the_topic,
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_is_answered_as_kafka_does(case, either, name, request):
    """OFS-01, OFS-02, TOP-06."""
    check("offsets", case.__name__, play(case, either.bootstrap, name), peer=is_peer(request))


def test_served_are_the_versions_that_kafka_serves(raw):
    asked = {"client_software_name": "x", "client_software_version": "1"}
    served = {
        each["api_key"]: (each["min_version"], each["max_version"])
        for each in raw.ask("api_versions", 3, asked)["api_keys"]
    }
    assert {key: served[key] for key in (8, 9, 10, 47)} == {
        8: (2, 10),
        9: (1, 10),
        10: (0, 6),
        47: (0, 0),
    }


# Real clients that assign partitions themselves.


def with_confluent(bootstrap, topic, group, read):
    config = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "log_level": 0,
    }
    consumer = Consumer(config)
    try:
        consumer.assign([TopicPartition(topic, 0)])
        found = [consumer.poll(PATIENCE_SECONDS) for _ in range(read)]
        consumer.commit(found[-1], asynchronous=False)
        (committed,) = consumer.committed([TopicPartition(topic, 0)], PATIENCE_SECONDS)
        return [each.value() for each in found], committed.offset
    finally:
        consumer.close()


def with_kafka_python(bootstrap, topic, group, read):
    partition = kafka.TopicPartition(topic, 0)
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_poll_records=1,
    )
    try:
        consumer.assign([partition])
        found = [next(consumer).value for _ in range(read)]
        consumer.commit()
        return found, consumer.committed(partition)
    finally:
        consumer.close()


def with_aiokafka(bootstrap, topic, group, read):
    async def run():
        partition = AioPartition(topic, 0)
        consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        consumer.assign([partition])
        await consumer.start()
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                found = [(await consumer.getone()).value for _ in range(read)]
                await consumer.commit()
                return found, await consumer.committed(partition)
        finally:
            await consumer.stop()

    return asyncio.run(run())


CLIENTS = (with_confluent, with_kafka_python, with_aiokafka)


@pytest.mark.slow
@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.__name__)
def test_a_client_goes_on_where_its_group_stopped(client, strom, topic, name):
    """OFS-02, OFS-03, GRP-02, GRP-18: what is stored is the next offset; each group has its own.

    And OFS-13: who takes another's group id by mistake takes its offsets with it.
    """
    values = [b"%d" % each for each in range(20)]
    Confluent.send(strom.bootstrap, topic, [Sent(None, each) for each in values], "none")
    assert client(strom.bootstrap, topic, name, 5) == (values[:5], 5)
    assert client(strom.bootstrap, topic, name, 3) == (values[5:8], 8)
    assert client(strom.bootstrap, topic, f"{name}-other", 2) == (values[:2], 2)


@pytest.mark.slow
def test_without_storing_the_start_is_what_the_client_says(strom, topic, name):
    """OFS-04."""
    values = [b"%d" % each for each in range(3)]
    Confluent.send(strom.bootstrap, topic, [Sent(None, each) for each in values], "none")
    for _ in range(2):
        consumer = Consumer(
            {
                "bootstrap.servers": strom.bootstrap,
                "group.id": name,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )
        consumer.assign([TopicPartition(topic, 0)])
        found = [consumer.poll(PATIENCE_SECONDS).value() for _ in values]
        consumer.close()
        assert found == values


@pytest.mark.slow
def test_offsets_are_committed_by_themselves_every_now_and_then(strom, topic, name):
    """OFS-06: every five seconds if nobody says otherwise; here somebody does."""
    values = [b"%d" % each for each in range(10)]
    Confluent.send(strom.bootstrap, topic, [Sent(None, each) for each in values], "none")
    config = {
        "bootstrap.servers": strom.bootstrap,
        "group.id": name,
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": 50,
        "log_level": 0,
    }
    reader, onlooker = Consumer(config), Consumer(config)
    try:
        reader.assign([TopicPartition(topic, 0)])
        for expected in values:
            assert reader.poll(PATIENCE_SECONDS).value() == expected

        def committed():
            reader.poll(0.05)
            (told,) = onlooker.committed([TopicPartition(topic, 0)], PATIENCE_SECONDS)
            return told.offset

        assert until(committed, lambda offset: offset >= len(values)) == len(values)
    finally:
        reader.close()
        onlooker.close()


def test_an_admin_moves_offsets_by_hand(strom, topic, name):
    """OFS-07."""
    Confluent.send(strom.bootstrap, topic, [Sent(None, b"%d" % each) for each in range(9)], "none")
    assert with_confluent(strom.bootstrap, topic, name, 5)[1] == 5
    admin = AdminClient({"bootstrap.servers": strom.bootstrap, "log_level": 0})
    moved = [ConsumerGroupTopicPartitions(name, [TopicPartition(topic, 0, 2)])]
    (future,) = admin.alter_consumer_group_offsets(moved).values()
    assert [each.offset for each in future.result().topic_partitions] == [2]
    (listed,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)]).values()
    found = {(each.topic, each.partition): each.offset for each in listed.result().topic_partitions}
    assert found == {(topic, 0): 2}
    assert with_confluent(strom.bootstrap, topic, name, 1) == ([b"2"], 3)


# Topics of the coordinators.

INTERNAL = {"__consumer_offsets": 50, "__transaction_state": 40}


@pytest.mark.slow
def test_internal_topics_are_made_by_their_own_settings_whoever_asks_first(broker_process):
    """OFS-01: a coordinator that finds an ordinary topic in its place would lose state."""
    process = broker_process(num_partitions=3, transaction_state_log_num_partitions=40)
    topics = [{"name": each} for each in INTERNAL]
    asked = {"topics": topics, "allow_auto_topic_creation": True}
    what = [
        {"resource_type": 2, "resource_name": each, "configuration_keys": ["cleanup.policy"]}
        for each in INTERNAL
    ]
    with Raw(process.bootstrap) as raw:
        told = until(
            lambda: raw.ask("metadata", 9, asked)["topics"],
            lambda topics: all(each["partitions"] for each in topics),
        )
        found = {each["name"]: len(each["partitions"]) for each in told}
        configs = raw.ask("describe_configs", 4, {"resources": what})["results"]
    assert found == INTERNAL
    assert {each["is_internal"] for each in told} == {True}
    assert [each["configs"][0]["value"] for each in configs] == ["compact", "compact"]


# Restarts.


def committed_after(process, ways, name):
    """Commit, end the broker in each of these ways, and return what is told afterwards."""
    told = []
    with Raw(process.bootstrap) as raw:
        new = {"name": name, "num_partitions": 3, "replication_factor": 1}
        raw.ask("create_topics", 7, {"topics": [new], "timeout": 10000})
    for number, end in enumerate(ways, 1):
        with Raw(process.bootstrap) as raw:
            for group in range(20):
                asked = {
                    "group_id": f"g{group}",
                    "generation_id_or_member_epoch": -1,
                    "topics": [{"name": name, "partitions": [offset(n, number) for n in range(3)]}],
                }
                raw.ask("find_coordinator", 4, {"coordinator_keys": [f"g{group}"], "key_type": 0})
                answer = raw.ask("offset_commit", 9, asked)
                while answer["topics"][0]["partitions"][0]["error_code"] in BUSY:
                    answer = raw.ask("offset_commit", 9, asked)
                codes = {each["error_code"] for each in answer["topics"][0]["partitions"]}
                assert codes == {"none"}
        end()
        process.start()
        with Raw(process.bootstrap) as raw:
            told.append({offset for group in range(20) for offset in all_offsets(raw, group)})
    return told


def all_offsets(raw, group):
    asked = {"group_id": f"g{group}", "topics": None}
    answer = raw.ask("offset_fetch", 7, asked)
    while answer["error_code"] in BUSY:
        answer = raw.ask("offset_fetch", 7, asked)
    found = [each["committed_offset"] for each in answer["topics"][0]["partitions"]]
    assert len(found) == 3
    return found


@pytest.mark.slow
def test_offsets_survive_a_stop_and_a_kill(broker_process, name):
    """OFS-01: what was acknowledged is told after a clean stop, and after none."""
    process = broker_process()
    ways = (process.stop, process.kill, process.kill, process.stop)
    assert committed_after(process, ways, name) == [{1}, {2}, {3}, {4}]
