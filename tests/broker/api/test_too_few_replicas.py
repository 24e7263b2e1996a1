"""Too few replicas in sync (PRO-12, PRO-23): acks=all is refused, and nobody else.

One broker is all there is here, so a second replica is put into the metadata by hand.
"""

import asyncio

from strom.metadata.records import PartitionChange
from strom.replicated.machine import Decision
from tests.broker.api.conftest import create
from tests.conformance.batches import batch

ALL, LEADER = -1, 1


def send(raw, topic, acks):
    data = {"index": 0, "records": batch([b"x"])}
    topics = [{"name": topic, "partition_data": [data]}]
    told = raw.ask("produce", 9, {"acks": acks, "timeout": 1, "topic_data": topics})
    return told["responses"][0]["partition_responses"][0]


def change(broker, topic_id, **values):
    """Have the controller say that the partition is otherwise now, and wait until it shows."""
    parts = broker.broker.parts

    async def carry_out():
        record = PartitionChange(topic_id=topic_id, partition_id=0, **values)
        await parts.runtime.execute(lambda: Decision((record,), None))
        await parts.publisher.wait_published()

    asyncio.run_coroutine_threadsafe(carry_out(), broker._loop).result(60)


def has_two_replicas(broker, topic_id):
    here = broker.broker.parts.replicas.directories[0].id
    change(broker, topic_id, replicas=(1, 2), isr=(1,), directories=(here, None))


def test_acks_all_is_refused_while_too_few_are_in_sync(broker, raw, name):
    made = create(raw, name, partitions=1, min_insync_replicas=2)
    has_two_replicas(broker, made["topic_id"])
    refused = send(raw, name, ALL)
    assert (refused["error_code"], refused["log_start_offset"]) == ("not_enough_replicas", 0)
    assert send(raw, name, LEADER)["error_code"] == "none"
    change(broker, made["topic_id"], isr=(1, 2))
    assert send(raw, name, ALL)["error_code"] == "request_timed_out"


def test_no_more_need_be_in_sync_than_there_are_replicas(broker, raw, name):
    """As in Kafka: otherwise nobody could ever write there with acks=all."""
    made = create(raw, name, partitions=1, min_insync_replicas=3)
    assert send(raw, name, ALL)["error_code"] == "none"
    has_two_replicas(broker, made["topic_id"])
    assert send(raw, name, ALL)["error_code"] == "not_enough_replicas"
    change(broker, made["topic_id"], replicas=(1,), directories=(None,))
    assert send(raw, name, ALL)["error_code"] == "none"
