"""Snapshots of the producers: `<offset>.snapshot`, the state in front of that offset.

    version int16 (1) | CRC-32C uint32 of all that follows | count int32 | for each producer:
    id int64 | epoch int16 | last sequence int32 | last offset int64 | offset delta int32 |
    timestamp int64 | coordinator epoch int32 | first offset of the open transaction int64

Only the last of a producer's batches is in it, as in Kafka: after a restart, only that one is
recognised when it comes again. One is written when a segment is left and when the log is closed. A
damaged one is as good as none.
"""

from struct import Struct

from crc32c import crc32c

from strom.log.producers import Producer, Producers, Written
from strom.records.batch import NO_SEQUENCE

VERSION = 1
_HEAD = Struct(">hI")
_COUNT = Struct(">i")
_ENTRY = Struct(">qhiqiqiq")


def write_snapshot(producers: Producers) -> bytes:
    """Return the snapshot's bytes."""
    entries = []
    for producer_id, producer in producers.items():
        last = producer.batches[-1] if producer.batches else None
        entries.append(
            _ENTRY.pack(
                producer_id,
                producer.epoch,
                last.last_sequence if last else NO_SEQUENCE,
                last.last_offset if last else -1,
                last.last_offset - last.first_offset if last else 0,
                producer.last_timestamp_ms,
                producer.coordinator_epoch,
                producer.transaction_start,
            )
        )
    body = _COUNT.pack(len(entries)) + b"".join(entries)
    return _HEAD.pack(VERSION, crc32c(body)) + body


def read_snapshot(data: bytes, name: str) -> Producers | None:
    """Return the producers that the snapshot holds, or None if it is damaged."""
    if len(data) < _HEAD.size + _COUNT.size:
        return None
    version, crc = _HEAD.unpack_from(data)
    body = memoryview(data)[_HEAD.size :]
    if version != VERSION or crc != crc32c(body):
        return None
    (count,) = _COUNT.unpack_from(body)
    entries = body[_COUNT.size :]
    if count < 0 or len(entries) != count * _ENTRY.size:
        return None
    producers = Producers(name)
    for fields in _ENTRY.iter_unpack(entries):
        producers.restore(fields[0], _read_producer(fields))
    return producers


def _read_producer(fields: tuple[int, ...]) -> Producer:
    _, epoch, last_sequence, last_offset, delta, timestamp, coordinator_epoch, start = fields
    producer = Producer(epoch)
    producer.last_timestamp_ms = timestamp
    producer.coordinator_epoch = coordinator_epoch
    producer.transaction_start = start
    if last_offset >= 0:
        first_sequence = (last_sequence - delta) & 0x7FFFFFFF if last_sequence >= 0 else NO_SEQUENCE
        producer.batches.append(
            Written(first_sequence, last_sequence, last_offset - delta, last_offset, timestamp)
        )
    return producer
