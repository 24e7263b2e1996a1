"""Members of consumer groups, by three client libraries: each reads in a thread until it ends.

All of them tell the same: which partitions they have, what they have read, and how often they were
given partitions.
"""

import asyncio
import subprocess
import sys
import threading
import warnings
from collections import Counter

import confluent_kafka
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AioRange
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor as AioRoundRobin
from confluent_kafka.admin import AdminClient, NewTopic

from tests import patience
from tests.patience import PATIENCE_SECONDS

with warnings.catch_warnings():
    # kafka-python reads its schemas, while it is imported, in a way that is going out of use.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

POLL_SECONDS = 0.05
#: kafka-python takes what it has no time left for as failed, a commit before a round too.
POLL_LONG_MS = 400
#: Nobody is taken for dead who is only slow; of those that die one says so itself.
SESSION_MS, HEARTBEAT_MS, MAX_POLL_MS = 30_000, 200, 60_000
DYING_SESSION_MS = 5_000


class Reader(threading.Thread):
    """A member of a group that reads until it is stopped."""

    default_strategy = "range"

    def __init__(self, bootstrap, group, topics, **options):
        super().__init__(daemon=True)
        self.bootstrap, self.group, self.topics = bootstrap, group, topics
        self.instance = options.pop("instance", None)
        self.strategy = options.pop("strategy", self.default_strategy)
        self.max_poll_ms = options.pop("max_poll_ms", MAX_POLL_MS)
        self.session_ms = options.pop("session_ms", SESSION_MS)
        assert not options, options
        #: (topic, partition) of what it has.
        self.has = frozenset()
        #: (topic, partition, value) of what it has read.
        self.read = []
        #: What it was given and what was taken from it, each time.
        self.given, self.taken = [], []
        self.failure = None
        self._ended = threading.Event()
        self._go_on = threading.Event()
        self._go_on.set()
        self.start()

    def run(self):
        try:
            self.serve()
        except Exception as error:  # noqa: BLE001 - told to who waits for this reader
            self.failure = error

    def note(self, has, read):
        self.has = frozenset(has)
        self.read += read

    def stall(self):
        """Stop asking for records; the connection stays."""
        self._go_on.clear()

    def go_on(self):
        self._go_on.set()

    def end(self):
        """Leave the group and end."""
        self._ended.set()
        self._go_on.set()
        self.join(PATIENCE_SECONDS)
        assert not self.is_alive(), "a reader does not end"
        assert self.failure is None, self.failure


class ConfluentReader(Reader):
    """By librdkafka."""

    name = "confluent"

    def options(self):
        """What the protocol of the group asks for."""
        return {
            "partition.assignment.strategy": self.strategy,
            "session.timeout.ms": self.session_ms,
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "max.poll.interval.ms": self.max_poll_ms,
        }

    def is_incremental(self):
        return self.strategy == "cooperative-sticky"

    def serve(self):
        config = self.options() | {
            "bootstrap.servers": self.bootstrap,
            "group.id": self.group,
            "auto.offset.reset": "earliest",
            "topic.metadata.refresh.interval.ms": 300,
            "log_level": 0,
        }
        if self.instance:
            config["group.instance.id"] = self.instance
        consumer = confluent_kafka.Consumer(config)
        incremental = self.is_incremental()

        def on_assign(_, partitions):
            self.given.append(places(partitions))
            (consumer.incremental_assign if incremental else consumer.assign)(partitions)

        def on_revoke(_, partitions):
            self.taken.append(places(partitions))
            if incremental:
                consumer.incremental_unassign(partitions)
            else:
                consumer.unassign()

        consumer.subscribe(self.topics, on_assign=on_assign, on_revoke=on_revoke)
        while not self._ended.is_set():
            self._go_on.wait()
            found = [each for each in consumer.consume(100, POLL_SECONDS) if each.error() is None]
            read = [(each.topic(), each.partition(), each.value().decode()) for each in found]
            self.note(places(consumer.assignment()), read)
        consumer.close()
        self.has = frozenset()


class NewReader(ConfluentReader):
    """By librdkafka, with the consumer protocol."""

    name = "consumer protocol"

    default_strategy = "uniform"

    def options(self):
        return {"group.protocol": "consumer", "group.remote.assignor": self.strategy}

    def is_incremental(self):
        return True


def noting(reader, base):
    """A listener that notes what the reader is given and what is taken from it."""

    class Noting(base):
        def on_partitions_revoked(self, revoked):
            reader.taken.append(places(revoked))

        def on_partitions_assigned(self, assigned):
            reader.given.append(places(assigned))

    return Noting()


def values_in(found):
    """(topic, partition, value) of what was read, by partition."""
    return [
        (each.topic, each.partition, each.value.decode())
        for batch in found.values()
        for each in batch
    ]


class KafkaPythonReader(Reader):
    """By kafka-python."""

    name = "kafka-python"
    strategies = {  # noqa: RUF012 - never changed
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor,
    }

    def serve(self):
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=self.group,
            group_instance_id=self.instance,
            auto_offset_reset="earliest",
            partition_assignment_strategy=[self.strategies[self.strategy]],
            session_timeout_ms=self.session_ms,
            heartbeat_interval_ms=HEARTBEAT_MS,
            max_poll_interval_ms=self.max_poll_ms,
            metadata_max_age_ms=300,
        )
        consumer.subscribe(self.topics, listener=noting(self, kafka.ConsumerRebalanceListener))
        while not self._ended.is_set():
            self._go_on.wait()
            read = values_in(consumer.poll(POLL_LONG_MS))
            self.note(places(consumer.assignment()), read)
        consumer.close()
        self.has = frozenset()


class AioReader(Reader):
    """By aiokafka."""

    name = "aiokafka"
    strategies = {"range": AioRange, "roundrobin": AioRoundRobin}  # noqa: RUF012 - never changed

    def serve(self):
        asyncio.run(self.serve_in_loop())

    async def serve_in_loop(self):
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=self.group,
            group_instance_id=self.instance,
            auto_offset_reset="earliest",
            partition_assignment_strategy=[self.strategies[self.strategy]],
            session_timeout_ms=self.session_ms,
            heartbeat_interval_ms=HEARTBEAT_MS,
            max_poll_interval_ms=self.max_poll_ms,
            metadata_max_age_ms=300,
        )
        consumer.subscribe(self.topics, listener=noting(self, ConsumerRebalanceListener))
        await consumer.start()
        try:
            while not self._ended.is_set():
                if not self._go_on.is_set():
                    await asyncio.get_running_loop().run_in_executor(None, self._go_on.wait)
                read = values_in(await consumer.getmany(timeout_ms=round(POLL_SECONDS * 1000)))
                self.note(places(consumer.assignment()), read)
        finally:
            await consumer.stop()
            self.has = frozenset()


READERS = (ConfluentReader, KafkaPythonReader, AioReader)


def places(partitions):
    """(topic, partition) of whatever a library calls a partition."""
    return frozenset((each.topic, each.partition) for each in partitions)


def until(condition, *readers):
    """Wait until it holds; a reader that failed says so instead."""

    def holds():
        for each in readers:
            assert each.failure is None, each.failure
        return condition()

    patience.until(holds, told=lambda: [sorted(each.has) for each in readers])


def shared(readers, partitions):
    """Whether each partition is with exactly one of the readers, and none has another."""
    counted = Counter(place for each in readers for place in each.has)
    return set(counted) == set(partitions) and set(counted.values()) == {1}


def until_shared(readers, partitions):
    until(lambda: shared(readers, partitions), *readers)


def all_of(topic, count):
    return [(topic, partition) for partition in range(count)]


def read_by(*readers):
    return Counter(value for each in readers for _, _, value in each.read)


class World:
    """Topics and groups of one test."""

    def __init__(self, bootstrap, name):
        self.bootstrap, self.name = bootstrap, name
        self.admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self.readers = []

    def topic(self, partitions, suffix=""):
        topic = f"{self.name}{suffix}"
        self.admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result()
        return topic

    def send(self, topic, partitions, values):
        """Send values round the partitions."""
        producer = confluent_kafka.Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 5})
        for number, value in enumerate(values):
            producer.produce(topic, value.encode(), partition=number % partitions)
        assert producer.flush(PATIENCE_SECONDS) == 0

    def reader(self, kind, *topics, group="", **options):
        group = f"{self.name}{group}"
        made = kind(self.bootstrap, group, list(topics or [self.name]), **options)
        self.readers.append(made)
        return made

    def close(self):
        for each in self.readers:
            if each.is_alive():
                each.end()


class Killed:
    """A member in a process of its own, to be killed without a word."""

    def __init__(self, kind, bootstrap, group, topic):
        script = "from tests.conformance.members import main; main()"
        self.process = subprocess.Popen(
            [sys.executable, "-c", script, kind.name, bootstrap, group, topic],
            stdout=subprocess.PIPE,
            text=True,
        )

    def wait_for_partitions(self):
        """Wait until it has partitions; which."""
        return frozenset(map(eval_place, self.process.stdout.readline().split()))

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def eval_place(text):
    topic, _, partition = text.rpartition(":")
    return topic, int(partition)


def main():
    """Read as a member until killed; tell when there are partitions."""
    kind, bootstrap, group, topic = sys.argv[1:]
    made = {each.name: each for each in (*READERS, NewReader)}[kind]
    reader = made(bootstrap, group, [topic], session_ms=DYING_SESSION_MS)
    until(lambda: reader.has, reader)
    sys.stdout.write(" ".join(f"{name}:{number}" for name, number in reader.has) + "\n")
    sys.stdout.flush()
    reader.join()
