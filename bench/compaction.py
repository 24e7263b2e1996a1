"""How fast any Kafka compacts a log, and what producers notice of it; prints one line of JSON.

python -m bench.compaction compact --data DIR --megabytes 100

DIR is the broker's log directory: when the log there stops getting smaller it is compacted.
"""

import argparse
import os
import time
from contextlib import suppress
from functools import partial
from itertools import cycle
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from bench.load import add_verb, config, create, quantiles, tell

KEY_BYTES = 10
#: How often a key is written again.
VERSIONS = 20
SEGMENTS = 30
SEGMENT_BYTES_MIN = 1 << 20
PRODUCED_AT_ONCE = 500
WAITING_MAX = 50_000
#: Of the stream of records whose acknowledgements are timed meanwhile.
RATE = 500
STREAM = "beside-compaction"
LOOK_SECONDS = 0.1
#: A log that has not changed for so long will not; one that has shrunk by less has not begun.
CALM_SECONDS = 5
SHRUNK = 0.9
COMPACTION_SECONDS_MAX = 600


class Cleaning:
    """Watches the segments of a partition until they do not get smaller any more."""

    def __init__(self, directory):
        self.directory = directory
        self.begin = self.changed = self.looked = time.monotonic()
        self.first = self.size = self.measure()

    def measure(self):
        size = 0
        for entry in os.scandir(self.directory):
            if entry.name.endswith(".log"):
                with suppress(FileNotFoundError):  # it is being replaced
                    size += entry.stat().st_size
        return size

    def goes_on(self):
        now = time.monotonic()
        assert now < self.begin + COMPACTION_SECONDS_MAX, f"{self.size} of {self.first} bytes left"
        if now >= self.looked + LOOK_SECONDS:
            self.looked = now
            if (size := self.measure()) != self.size:
                self.size, self.changed = size, now
        return self.size > SHRUNK * self.first or now < self.changed + CALM_SECONDS


def compact(args):
    """Write the log, then have it compacted, with a stream beside it: before, and meanwhile."""
    segment_bytes = max(int(args.megabytes * 1e6) // SEGMENTS, SEGMENT_BYTES_MIN)
    args.topic_config += [
        "cleanup.policy=delete",
        f"segment.bytes={segment_bytes}",
        "min.cleanable.dirty.ratio=0.01",
    ]
    create(args, args.topic, 1)
    create(args, STREAM, 1)
    keys = write(args)
    end = time.monotonic() + args.seconds
    alone = stream(args, lambda: time.monotonic() < end)
    switch_to_compaction(args)
    cleaning = Cleaning(args.data / f"{args.topic}-0")
    beside = stream(args, cleaning.goes_on)
    assert cleaning.size > keys * args.size, "records were lost"
    meanwhile = [took for sent, took in beside if sent < cleaning.changed]
    return {
        "mb_s": cleaning.first / 1e6 / (cleaning.changed - cleaning.begin),
        "bytes_before": cleaning.first,
        "bytes_after": cleaning.size,
        **quantiles([took for _, took in alone], "alone"),
        **quantiles(meanwhile, "beside"),
    }


def write(args):
    """Fill the topic with records of the given size, keys and all; how many keys there are."""
    records = int(args.megabytes * 1e6) // args.size
    keys = records // VERSIONS
    value = b"x" * (args.size - KEY_BYTES)
    batch = [{"key": b"%0*d" % (KEY_BYTES, n), "value": value} for n in range(keys)]
    slices = cycle(
        [batch[n : n + PRODUCED_AT_ONCE] for n in range(0, len(batch), PRODUCED_AT_ONCE)]
    )
    producer = Producer(config(args) | {"delivery.report.only.error": True})
    sent = 0
    while sent < records:
        while len(producer) > WAITING_MAX:
            producer.poll(0.001)
        sent += producer.produce_batch(args.topic, next(slices))
    assert producer.flush(60) == 0, "records were not delivered"
    return keys


def stream(args, goes_on):
    """Send records at a steady rate; when each was sent, and how long it took to be told so."""
    producer = Producer(config(args, linger_ms=0, acks="all"))
    producer.list_topics(STREAM, timeout=10)
    took, begin, sent = [], time.monotonic(), 0

    def note(stamp, error, _):
        assert error is None, error
        took.append((stamp, time.monotonic() - stamp))

    while goes_on():
        due = begin + sent / RATE
        while (now := time.monotonic()) < due:
            producer.poll(min(due - now, 0.001))
        producer.produce(STREAM, b"x" * 1000, on_delivery=partial(note, time.monotonic()))
        sent += 1
    assert producer.flush(60) == 0, "records were not delivered"
    return took


def switch_to_compaction(args):
    entry = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
    topic = ConfigResource(ResourceType.TOPIC, args.topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": args.bootstrap})
    for future in admin.incremental_alter_configs([topic]).values():
        future.result()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    sub = add_verb(verbs, compact, "keyed records, written and compacted", size=100)
    sub.add_argument("--data", type=Path, required=True, help="where the broker keeps its logs")
    sub.add_argument("--megabytes", type=float, default=1000)
    tell(parser.parse_args())


if __name__ == "__main__":
    main()
