"""Ten million records, none lost, none twice, none out of order in its partition. Row: LOG-01."""

import multiprocessing
import os
import struct

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.patience import PATIENCE_SECONDS

RECORDS = int(os.environ.get("STROM_TEST_RECORDS", "10_000_000"))
PARTITIONS = 4
STEP = 20_000
SEQUENCE = struct.Struct(">q")
#: Eight bytes of sequence; the rest makes it a record of the usual size.
FILLING = b"." * 72


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_ten_million_records_arrive_in_order(strom, make_topic):
    """MSG-05."""
    topic = make_topic(partitions=PARTITIONS)
    sender = multiprocessing.get_context("spawn").Process(
        target=send, args=(strom.bootstrap, topic)
    )
    sender.start()
    try:
        read(strom.bootstrap, topic)
        sender.join(PATIENCE_SECONDS)
    finally:
        sender.kill()
        sender.join()
    assert sender.exitcode == 0


def send(bootstrap, topic):
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 20,
            "compression.type": "lz4",
            "delivery.report.only.error": True,
            "queue.buffering.max.messages": 10 * STEP,
            "queue.buffering.max.kbytes": 1 << 20,
        }
    )
    pack = SEQUENCE.pack
    for sequence in range(0, RECORDS // PARTITIONS, STEP):
        values = [
            {"value": pack(n) + FILLING}
            for n in range(sequence, min(sequence + STEP, RECORDS // PARTITIONS))
        ]
        for partition in range(PARTITIONS):
            while len(producer) > 9 * STEP:
                producer.poll(0.005)
            assert producer.produce_batch(topic, values, partition=partition) == len(values)
    assert producer.flush(PATIENCE_SECONDS) == 0


def read(bootstrap, topic):
    """Check every record: the sequence in its value is the offset it has."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "none",
            "enable.auto.commit": False,
            "queued.min.messages": 500_000,
            "check.crcs": True,
        }
    )
    consumer.assign([TopicPartition(topic, n, 0) for n in range(PARTITIONS)])
    following = [0] * PARTITIONS
    missing = RECORDS
    unpack = SEQUENCE.unpack_from
    while missing:
        batch = consumer.consume(10_000, PATIENCE_SECONDS)
        assert batch, f"{missing} records never came"
        for each in batch:
            partition = each.partition()
            expected = following[partition]
            assert each.offset() == expected
            assert unpack(each.value())[0] == expected
            following[partition] = expected + 1
        missing -= len(batch)
    consumer.close()
    assert following == [RECORDS // PARTITIONS] * PARTITIONS
