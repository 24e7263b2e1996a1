"""Workers that read, write and say how far they have read, all in one transaction; and a judge.

A `Worker` speaks the protocol itself, in either version of transactions, so that it can die at any
of its steps, repeat a request whose answer was lost, or go on as a zombie when another one has
taken over. What it reads is the numbers from 0 on; where it goes on is what its group has
committed. Each number goes to two partitions of a topic and to another topic, and must be in all of
them, once and in order.

`CopierProcess` is a process with librdkafka that copies a topic as a member of a group.
"""

import json
import os
import random
import subprocess
import sys
import threading
import time
from contextlib import suppress

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tests.conformance.batches import TRANSACTIONAL, batch
from tests.conformance.batches import Producer as Author
from tests.conformance.raw import Raw
from tests.patience import PATIENCE_SECONDS, until

TIMEOUT_MS = 60_000
PARTITIONS = 2
#: How much goes into one transaction: there shall be many.
NUMBERS_MAX = 2
COPIED_MAX = 10
#: Never set.
PAUSE = threading.Event()

#: Said of what is under way, or of who coordinates: to be asked again.
AGAIN = {
    "concurrent_transactions",
    "coordinator_load_in_progress",
    "coordinator_not_available",
    "not_coordinator",
    "not_enough_replicas",
    "not_leader_or_follower",
    "unknown_topic_or_partition",
    "unstable_offset_commit",
}
#: Said to one whose place another has taken.
FENCED = {"producer_fenced", "invalid_producer_epoch", "invalid_producer_id_mapping"}


class FencedError(Exception):
    """Another one has taken over."""


class RefusedError(Exception):
    """The transaction cannot go on as it is."""


class DeadError(Exception):
    """The worker was killed, by dice."""


class Worker:
    """One incarnation of a worker; a transactional id has many, one after another."""

    def __init__(self, process, name, *, version, dice, deadline):
        #: The topic has the name of the transactional id.
        self.process, self.name, self.topic = process, name, name
        self.places = [*((name, each) for each in range(PARTITIONS)), (other_topic(name), 0)]
        self.version, self.dice, self.deadline = version, dice, deadline
        self.raw = None
        self.id, self.epoch, self.sequences = -1, -1, {}
        #: How likely each step is the last one of this incarnation.
        self.mortality = 0.02
        self.transactions = 0
        #: One before it that is to come back while a transaction of this one is open.
        self.zombie = None

    # Talking to a broker that comes and goes.

    def ask(self, api, version, values, codes):
        """Ask until there is an answer that is not to be asked again."""
        while True:
            assert time.monotonic() < self.deadline, f"{self.name}: {api} takes for ever"
            try:
                if self.raw is None:
                    self.raw = Raw(self.process.bootstrap)
                answer = self.raw.ask(api, version, values)
            except (OSError, AssertionError):
                # The request may have been carried out: it is the answer that is lost.
                self.hang_up()
                PAUSE.wait(0.02)
                continue
            found = set(codes(answer))
            if found & FENCED:
                raise FencedError(api, found)
            if not found & AGAIN:
                if found - {"none"}:
                    raise RefusedError(api, found)
                return answer

    def hang_up(self):
        if self.raw is not None:
            self.raw.close()
        self.raw = None

    def may_die(self):
        if self.dice.random() < self.mortality:
            raise DeadError

    # What it does.

    def init(self):
        asked = {"key_type": 1, "coordinator_keys": [self.name]}
        self.ask("find_coordinator", 4, asked, lambda a: codes_in(a["coordinators"]))
        asked = {"key_type": 0, "coordinator_keys": [self.group]}
        self.ask("find_coordinator", 4, asked, lambda a: codes_in(a["coordinators"]))
        asked = {"transactional_id": self.name, "transaction_timeout": TIMEOUT_MS}
        answer = self.ask("init_producer_id", 5, asked, lambda a: [a["error_code"]])
        self.id, self.epoch, self.sequences = answer["producer_id"], answer["producer_epoch"], {}

    @property
    def group(self):
        return f"{self.name}-group"

    def who(self):
        known = {"transactional_id": self.name, "producer_id": self.id}
        return known | {"producer_epoch": self.epoch}

    def committed(self):
        """Where to go on: all before is done."""
        topic = {"name": self.topic, "partition_indexes": [0]}
        asked = {"groups": [{"group_id": self.group, "topics": [topic]}], "require_stable": True}
        answer = self.ask(
            "offset_fetch", 9, asked, lambda a: [*codes_in(a["groups"]), *codes_deep(a["groups"])]
        )
        (found,) = answer["groups"][0]["topics"][0]["partitions"]
        return max(found["committed_offset"], 0)

    def work(self, end):
        """Go on from where the group is until the end, or death."""
        self.init()
        number = self.committed()
        while number < end:
            count = min(self.dice.randint(1, NUMBERS_MAX), end - number)
            try:
                done = self.transact(number, count)
            except RefusedError:
                # As clients do when told to: abort, and do it again.
                self.end(commit=False)
                done = False
            self.transactions += 1
            number = number + count if done else number

    def transact(self, number, count):
        """One transaction: the numbers, to all places, and the offset behind them."""
        places = self.dice.sample(self.places, len(self.places))
        if self.version == 1:
            self.add(places)
        # All at once, or one of them first: then there is something to die in between.
        cut = self.dice.choice([len(places), 1])
        for some in filter(None, (places[:cut], places[cut:])):
            self.may_die()
            self.write(some, [b"%d" % each for each in range(number, number + count)])
            if self.zombie is not None:
                haunt(self.zombie)
                self.zombie = None
        self.may_die()
        self.commit_offset(number + count)
        self.may_die()
        commit = self.dice.random() < 0.9
        self.end(commit=commit)
        return commit

    def add(self, places):
        asked = {f"v3_and_below_{key}": value for key, value in self.who().items()}
        asked["v3_and_below_topics"] = [
            {"name": topic, "partitions": [each for name, each in places if name == topic]}
            for topic in sorted({name for name, _ in places})
        ]
        self.ask("add_partitions_to_txn", 3, asked, codes_deep)
        self.ask(
            "add_offsets_to_txn",
            4,
            self.who() | {"group_id": self.group},
            lambda a: [a["error_code"]],
        )

    def write(self, places, values):
        """Write the values to each of the places, in one request."""
        data = [
            {"name": topic, "partition_data": [self.batch_for((topic, each), values)]}
            for topic, each in places
        ]
        asked = {"transactional_id": self.name, "acks": -1, "timeout": 10_000, "topic_data": data}
        version = 12 if self.version == 2 else 11
        self.ask("produce", version, asked, lambda a: codes_deep(a["responses"]))
        for place in places:
            self.sequences[place] = self.sequences.get(place, 0) + len(values)

    def batch_for(self, place, values):
        records = batch(
            values,
            producer=Author(self.id, self.epoch, self.sequences.get(place, 0)),
            time_ms=round(time.time() * 1000),
            attributes=TRANSACTIONAL,
        )
        return {"index": place[1], "records": records}

    def commit_offset(self, offset):
        place = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
        asked = self.who() | {"group_id": self.group}
        asked["topics"] = [{"name": self.topic, "partitions": [place]}]
        version = 5 if self.version == 2 else 4
        self.ask("txn_offset_commit", version, asked, codes_deep)

    def end(self, *, commit):
        version = 5 if self.version == 2 else 4
        asked = self.who() | {"committed": commit}
        answer = self.ask("end_txn", version, asked, lambda a: [a["error_code"]])
        if self.version == 2:
            self.id, self.epoch = answer["producer_id"], answer["producer_epoch"]
            self.sequences = {}


def other_topic(name):
    """The second topic that a worker writes to."""
    return f"{name}-too"


def codes_in(items):
    return [each["error_code"] for each in items]


def codes_deep(value):
    """Every code that there is in an answer."""
    if isinstance(value, dict):
        for name, each in value.items():
            if name.endswith("error_code"):
                yield each
            else:
                yield from codes_deep(each)
    elif isinstance(value, list):
        for each in value:
            yield from codes_deep(each)


def run_lives(process, name, *, version, seed, end, deadline):
    """Live one life after the other until the work is done; how many transactions that took.

    A dead worker may come back as a zombie, when another one has begun or has a transaction open:
    nothing that it does may count.
    """
    dice, transactions, dead = random.Random(seed), 0, None
    while True:
        worker = Worker(process, name, version=version, dice=dice, deadline=deadline)
        try:
            if dead is not None and dice.random() < 0.3:
                worker.init()
                haunt(dead)
            elif dice.random() < 0.5:
                worker.zombie = dead
            worker.work(end)
        except (DeadError, FencedError):
            transactions += worker.transactions
            worker.hang_up()
            dead = worker
            continue
        worker.hang_up()
        return transactions + worker.transactions


def haunt(zombie):
    """Have a dead worker try to go on with what it was doing."""
    zombie.mortality = 0
    steps = [
        lambda: zombie.write([(zombie.topic, 0)], [b"haunted"]),
        lambda: zombie.commit_offset(10**9),
        lambda: zombie.end(commit=True),
    ]
    for step in steps:
        with suppress(FencedError, RefusedError):
            step()
            raise AssertionError(f"{zombie.name}: a zombie was let in")
    zombie.hang_up()


# A process with librdkafka that copies as a member of a group.


def copy(bootstrap, source, target, name, seed):
    """Copy until killed: each batch, and how far that is, in one transaction; tell of each."""
    dice = random.Random(seed)
    common = {"bootstrap.servers": bootstrap, "log_level": 0, "reconnect.backoff.max.ms": 200}
    consumer = Consumer(
        common
        | {
            "group.id": f"{target}-copiers",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 2000,
            "heartbeat.interval.ms": 200,
            # It has read to the end long before it has copied, and seeks back when it aborts: what
            # waits there for more would hold up that read.
            "fetch.wait.max.ms": 20,
        }
    )
    producer = Producer(
        common | {"transactional.id": name, "transaction.timeout.ms": 5000, "linger.ms": 1}
    )
    producer.init_transactions(PATIENCE_SECONDS)
    consumer.subscribe([source])
    while True:
        count = dice.randint(1, COPIED_MAX)
        found = [each for each in consumer.consume(count, 0.2) if not each.error()]
        if not found:
            continue
        producer.begin_transaction()
        for each in found:
            producer.produce(target, each.value(), partition=each.partition())
        if not is_committed(producer, consumer, commit=dice.random() < 0.9):
            producer.abort_transaction()
            for each in consumer.committed(consumer.assignment(), timeout=PATIENCE_SECONDS):
                consumer.seek(TopicPartition(each.topic, each.partition, max(each.offset, 0)))
        os.write(sys.stdout.fileno(), b".")


def is_committed(producer, consumer, *, commit):
    """Commit what was written along with how far was read, if that is wanted and can be."""
    offsets = [each for each in consumer.position(consumer.assignment()) if each.offset >= 0]
    try:
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata())
        if commit:
            producer.commit_transaction()
    except KafkaException as error:
        if not error.args[0].txn_requires_abort():
            raise
        return False
    return commit


class CopierProcess:
    """A copier that can be killed; it is begun again under the same transactional id.

    The tally is a file that has a byte for each transaction that the copier saw the end of.
    """

    def __init__(self, tally, *arguments):
        self.tally, self.arguments = tally, arguments
        self.process, self.lives = None, 0

    def start(self):
        """Begin it, unless it runs."""
        if self.process is None or self.process.poll() is not None:
            command = [sys.executable, "-m", "tests.conformance.exactly_once"]
            self.lives += 1
            with open(self.tally, "ab") as tally:
                self.process = subprocess.Popen(
                    [*command, json.dumps(self.arguments)], stdout=tally, stderr=subprocess.DEVNULL
                )

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()


# The judge.


def read_committed(bootstrap, topic, partitions):
    """What a careful reader finds in each partition, up to its end; nothing may be left open."""
    until_closed(bootstrap, topic, partitions)
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "judge",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, each, 0) for each in range(partitions)])
    found, ended = {each: [] for each in range(partitions)}, set()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(ended) < partitions and time.monotonic() < deadline:
        for each in consumer.consume(1000, 1):
            if each.error() is None:
                found[each.partition()].append(each.value())
            elif each.error().code() == KafkaError._PARTITION_EOF:
                ended.add(each.partition())
    consumer.close()
    assert len(ended) == partitions, "a reader does not reach the end"
    return found


def until_closed(bootstrap, topic, partitions):
    """Wait for the ends that are on their way, also those of the dead whose time is not up yet."""

    def ends_are_one():
        return len({tuple(end_offsets(bootstrap, topic, partitions, each)) for each in (0, 1)}) == 1

    until(ends_are_one, told=lambda: "a transaction is open for good")


def end_offsets(bootstrap, topic, partitions, isolation_level):
    asked = [{"partition_index": each, "timestamp": -1} for each in range(partitions)]
    request = {"topics": [{"name": topic, "partitions": asked}], "isolation_level": isolation_level}
    with Raw(bootstrap) as raw:
        (told,) = raw.ask("list_offsets", 7, request)["topics"]
    return [
        each["offset"] for each in sorted(told["partitions"], key=lambda p: p["partition_index"])
    ]


if __name__ == "__main__":
    copy(*json.loads(sys.argv[1]))
