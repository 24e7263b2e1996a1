"""Load on the coordinators of any Kafka-compatible broker: transactions, groups, their offsets.

python -m bench.coordinators transact --partitions 6 --seconds 5 --every-ms 100
python -m bench.coordinators rebalance --members 10 --protocol consumer
python -m bench.coordinators commit --consumers 10 --seconds 5

As with bench.load, each prints one line of JSON.
"""

import argparse
import asyncio
import time
from contextlib import asynccontextmanager
from statistics import median

import uvloop
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from bench.asking import apis
from bench.load import add_verb, config, create, end_offsets, parallel, quantiles, tell, values
from bench.members import Group, new_member

#: Records that wait in a transactional producer: enough to keep it busy, few to flush at the end.
WAITING_MAX = 5000
PRODUCED_AT_ONCE = 500
REQUEST_SECONDS_MAX = 60
SETTLE_SECONDS_MAX = 60
#: Between two changes of a group, so that what follows the first is over.
CALM_SECONDS = 0.5
#: How many groups come and go before it is measured: a JVM gets faster for a while.
UNCOUNTED = 5
POLL_PAUSE_SECONDS = 0.001
RETRY_SECONDS = 0.1


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


def rebalance(args):
    """How long a group takes to join, to grow by one, and to shrink by one."""
    args.partitions = 2 * (args.members + 1)
    create(args, args.topic, args.partitions)
    producer = Producer(config(args))
    for partition in range(args.partitions):
        producer.produce(args.topic, b"x", partition=partition)
    assert producer.flush(REQUEST_SECONDS_MAX) == 0, "records were not delivered"
    have_coordinators(args)
    return uvloop.run(rebalances(args))


def have_coordinators(args):
    """Have the topic of the groups made, which a broker does for the first client that asks."""
    client = Consumer(config(args, group_id=f"{args.topic}-first"))
    end = time.monotonic() + REQUEST_SECONDS_MAX
    while True:
        try:
            client.committed([TopicPartition(args.topic, 0)], REQUEST_SECONDS_MAX)
            break
        except KafkaException:
            assert time.monotonic() < end, "there is no coordinator"
            time.sleep(RETRY_SECONDS)
    client.close()


async def rebalances(args):
    """The median of each change, after some that are not counted."""
    known, frames, rounds = apis(), {}, []
    for number in range(UNCOUNTED + args.repetitions):
        group = Group(f"{args.topic}-{number}", args.topic, args.partitions, known, frames)
        rounds.append(await change(group, args))
    counted = rounds[UNCOUNTED:]
    return {name: median(took[name] for took in counted) for name in counted[0]}


async def change(group, args):
    """Seconds of each change, the first being that there is a group.

    Nobody commits and every partition has one record: whoever is given a partition reads that.
    """
    took = {}
    waiting = [
        await new_member(group, args.protocol, args.bootstrap) for _ in range(args.members + 1)
    ]
    newcomer = waiting.pop()

    @asynccontextmanager
    async def timed(name):
        group.begin_change()
        begin = time.monotonic()
        yield
        await asyncio.wait_for(group.settled, SETTLE_SECONDS_MAX)
        took[name] = time.monotonic() - begin
        await asyncio.sleep(CALM_SECONDS)

    async with timed("join"):
        for member in waiting:
            member.start()
    async with timed("grow"):
        newcomer.start()
    async with timed("shrink"):
        await newcomer.stop()
    await group.end()
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
    sub.add_argument("--repetitions", type=int, default=3)
    tell(parser.parse_args())


if __name__ == "__main__":
    main()
