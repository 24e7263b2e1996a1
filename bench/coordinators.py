"""Load on the coordinators of any Kafka-compatible broker: transactions, groups, their offsets.

python -m bench.coordinators transact --partitions 6 --seconds 5 --every-ms 100
python -m bench.coordinators rebalance --members 10 --protocol consumer
python -m bench.coordinators commit --consumers 10 --seconds 5

As with bench.load, each prints one line of JSON.
"""

import argparse
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from statistics import median

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.load import add_verb, config, create, end_offsets, parallel, quantiles, tell, values

#: Records that wait in a transactional producer: enough to keep it busy, few to flush at the end.
WAITING_MAX = 5000
PRODUCED_AT_ONCE = 500
REQUEST_SECONDS_MAX = 60
SETTLE_SECONDS_MAX = 60
#: librdkafka joins a group once a second at most: not to measure that, changes are further apart.
CALM_SECONDS = 1.5
POLL_PAUSE_SECONDS = 0.001


def transact(args):
    """Transactions one after the other, after some that are not counted."""
    create(args, args.topic, args.partitions)
    producer = Producer(
        config(args, transactional_id=args.topic) | {"delivery.report.only.error": True}
    )
    producer.init_transactions(REQUEST_SECONDS_MAX)
    warm, _ = transactions(producer, args, args.warm_seconds)
    begin = time.monotonic()
    records, took = transactions(producer, args, args.seconds)
    seconds = time.monotonic() - begin
    kept = sum(end_offsets(args).values())
    assert kept >= warm + records, "records were lost"
    return {
        "records": records,
        "commits": len(took),
        "records_s": records / seconds,
        **quantiles(took, "commit"),
    }


def transactions(producer, args, seconds):
    """How many records were sent, and how long each commit took, all its records being written.

    Without the flush before it a commit would tell how much the client had left to send.
    """
    batch = [{"value": value} for value in values(args.size, PRODUCED_AT_ONCE)]
    sent, took, end = 0, [], time.monotonic() + seconds
    while (began := time.monotonic()) < end:
        producer.begin_transaction()
        sent += fill(producer, args, batch, began)
        assert producer.flush(REQUEST_SECONDS_MAX) == 0, "records were not delivered"
        asked = time.monotonic()
        producer.commit_transaction(REQUEST_SECONDS_MAX)
        took.append(time.monotonic() - asked)
    return sent, took


def fill(producer, args, batch, began):
    """Send what belongs into one transaction: so many records, or as many as there is time for."""
    sent, end = 0, began + args.every_ms / 1000
    while sent < args.every_records if args.every_records else time.monotonic() < end:
        while len(producer) > WAITING_MAX:
            producer.poll(POLL_PAUSE_SECONDS)
        assert producer.produce_batch(args.topic, batch) == len(batch), "the client's queue is full"
        sent += len(batch)
    return sent


def commit(args):
    """Offsets that consumers of one group commit, each waiting for its answer."""
    create(args, args.topic, args.consumers)
    done = parallel(args.consumers, commit_offsets, args)
    requests = sum(count for _, _, count in done)
    seconds = max(end for _, end, _ in done) - min(begin for begin, _, _ in done)
    return {"requests": requests, "requests_s": requests / seconds}


def commit_offsets(barrier, args):
    """Commit for one partition, from 1 upwards; begin, end and how many."""
    partition = barrier.wait()
    consumer = Consumer(config(args, group_id=args.topic, enable_auto_commit=False))
    consumer.assign([TopicPartition(args.topic, partition)])

    def put(offset):
        place = TopicPartition(args.topic, partition, offset)
        (answer,) = consumer.commit(offsets=[place], asynchronous=False)
        assert answer.error is None, answer.error

    put(0)
    barrier.wait()
    begin, count = time.monotonic(), 0
    while time.monotonic() < begin + args.seconds:
        count += 1
        put(count)
    end = time.monotonic()
    (kept,) = consumer.committed([TopicPartition(args.topic, partition)], REQUEST_SECONDS_MAX)
    assert kept.offset == count, f"{kept.offset} of {count}"
    consumer.close()
    return begin, end, count


class Group:
    """The consumers of a group, all in this process, and who has read which partition.

    Nobody commits and every partition has one record: whoever is given a partition reads that.
    """

    def __init__(self, args, name):
        self.args, self.name = args, name
        self.members, self.readers = {}, {}
        self.created = 0

    def add(self):
        """One more member, as of now."""
        number, self.created = self.created, self.created + 1
        member = Consumer(config(self.args, **self.settings()))

        def forget(_, partitions):
            for each in partitions:
                if self.readers.get(each.partition) == number:
                    del self.readers[each.partition]

        member.subscribe([self.args.topic], on_revoke=forget, on_lost=forget)
        self.members[number] = member

    def settings(self):
        own = {
            "group_id": self.name,
            "group_protocol": self.args.protocol,
            "enable_auto_commit": False,
            "auto_offset_reset": "earliest",
            "fetch_wait_max_ms": 10,
        }
        # For the consumer protocol the broker says how often.
        interval = {"heartbeat_interval_ms": self.args.heartbeat_ms}
        return own if self.args.protocol == "consumer" else own | interval

    def remove(self):
        """One member less, as of now; what is to be called to let it go."""
        number, member = self.members.popitem()
        self.readers = {p: reader for p, reader in self.readers.items() if reader != number}
        return member.close

    def is_settled(self):
        """Whether every partition has been read by whom it belongs to, and all have their share."""
        shares = Counter(self.readers.values())
        least = self.args.partitions // len(self.members)
        everything = len(self.readers) == self.args.partitions
        return everything and all(shares[number] >= least for number in self.members)

    def poll(self):
        for number, member in self.members.items():
            for message in member.consume(self.args.partitions, timeout=0):
                assert message.error() is None, message.error()
                self.readers[message.partition()] = number
        time.sleep(POLL_PAUSE_SECONDS)

    def settle(self):
        """Poll until it is settled."""
        end = time.monotonic() + SETTLE_SECONDS_MAX
        while not self.is_settled():
            assert time.monotonic() < end, f"{len(self.readers)} partitions are read"
            self.poll()

    def rest(self):
        end = time.monotonic() + CALM_SECONDS
        while time.monotonic() < end:
            self.poll()


def rebalance(args):
    """How long a group takes to join, to grow by one, and to shrink by one."""
    args.partitions = 2 * (args.members + 1)
    create(args, args.topic, args.partitions)
    producer = Producer(config(args))
    for partition in range(args.partitions):
        producer.produce(args.topic, b"x", partition=partition)
    assert producer.flush(REQUEST_SECONDS_MAX) == 0, "records were not delivered"
    # The broker's first group waits for the topic of its offsets, and is not counted.
    first = Group(args, f"{args.topic}-first")
    first.add()
    first.settle()
    first.remove()()
    with ThreadPoolExecutor(args.members + 1) as leaving:
        rounds = [
            change(Group(args, f"{args.topic}-{n}"), leaving) for n in range(args.repetitions)
        ]
    return {name: median(took[name] for took in rounds) for name in rounds[0]}


def change(group, leaving):
    """Seconds of each change, the first being that there is a group."""
    took = {}

    @contextmanager
    def timed(name):
        begin = time.monotonic()
        yield
        group.settle()
        took[name] = time.monotonic() - begin
        group.rest()

    with timed("join"):
        for _ in range(group.args.members):
            group.add()
    with timed("grow"):
        group.add()
    with timed("shrink"):
        gone = leaving.submit(group.remove())
    gone.result()
    list(leaving.map(Consumer.close, group.members.values()))
    return took


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    sub = add_verb(verbs, transact, "a transactional producer", partitions=6)
    sub.add_argument("--every-ms", type=float, default=100, help="commit so often")
    sub.add_argument("--every-records", type=int, default=0, help="or after so many records")
    sub.add_argument("--warm-seconds", type=float, default=1)
    sub = add_verb(verbs, commit, "offsets, each when the one before is answered")
    sub.add_argument("--consumers", type=int, default=10)
    sub = add_verb(verbs, rebalance, "a group joins, grows by one, shrinks by one")
    sub.add_argument("--members", type=int, default=10)
    sub.add_argument("--protocol", choices=("classic", "consumer"), default="classic")
    sub.add_argument("--heartbeat-ms", type=int, default=100)
    sub.add_argument("--repetitions", type=int, default=3)
    tell(parser.parse_args())


if __name__ == "__main__":
    main()
