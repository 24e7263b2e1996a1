"""Where the two connectors meet: one broker, one Spark session, and topics to read.

It stays up for all rounds, because a JVM gets faster for minutes, and because the topics take as
long to write as to measure.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from bench.sides import VENV, Strom
from tests import nodes

PARTITIONS = 4
SAMPLES_EVERY_SECONDS = 0.1
SEND_SECONDS = 30
STOP_SECONDS = 10
#: As it is set for work with much data; all else is as Spark's users find it.
SETTINGS = {
    "spark.driver.memory": "2g",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # What a query tells of its batches, counted afterwards.
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
}


def connector_jars():
    """The jars of Spark's own connector, if they could be had."""
    found = subprocess.run(
        [sys.executable, nodes.PEER, "connector", "--cached"], capture_output=True, text=True
    )
    return sorted(map(str, Path(found.stdout.strip()).glob("*.jar"))) if found.stdout else []


def open_spark(home, *, is_plain):
    """A session that has both connectors; its workers run Strom as it is installed.

    A plain one has the same settings, and nothing begun that only `format("strom")` needs.
    """
    from pyspark.sql import SparkSession

    from strom.spark.session import QUICK_CHECKPOINTS, RECOMMENDED, open_session

    java = subprocess.run([sys.executable, nodes.PEER, "java"], capture_output=True, text=True)
    os.environ["JAVA_HOME"] = java.stdout.strip()
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYTHONPATH"] = sysconfig.get_path("platlib", vars={"platbase": str(VENV)})
    own = {
        "spark.jars": ",".join(connector_jars()),
        "spark.local.dir": str(home / "local"),
        "spark.sql.warehouse.dir": str(home / "warehouse"),
    }
    settings = {**SETTINGS, **own}
    if is_plain:
        builder = SparkSession.builder.appName("bench").master("local[2]")
        session = builder.config(map={**RECOMMENDED, **QUICK_CHECKPOINTS, **settings}).getOrCreate()
    else:
        session = open_session("bench", "local[2]", quick_checkpoints=True, settings=settings)
    session.sparkContext.setLogLevel("OFF")
    return session


class Stage:
    """A broker, a session, and the topics that are read."""

    def __init__(self, bootstrap=None, *, is_plain=False):
        """With a broker of its own, or at the one that is there."""
        self.home = Path(tempfile.mkdtemp(prefix="strom-bench-"))
        self.broker = None if bootstrap else Strom({}).start()
        self.bootstrap = bootstrap or self.broker.bootstrap
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        self.spark = open_spark(self.home, is_plain=is_plain)
        #: Those that are read, by the size of their values.
        self.topics = {}
        self._made = 0

    def close(self):
        self.spark.stop()
        if self.broker is not None:
            self.broker.remove()
        shutil.rmtree(self.home, ignore_errors=True)

    def new_topic(self):
        """An empty topic with a name of its own."""
        self._made += 1
        topic = f"{self.home.name}-{self._made}"
        self.admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result()
        return topic

    def delete_topic(self, topic):
        self.admin.delete_topics([topic])[topic].result()

    def send(self, topic, values):
        """Write the values without Spark."""
        producer = Producer({"bootstrap.servers": self.bootstrap})
        assert producer.produce_batch(topic, [{"value": each} for each in values]) == len(values)
        assert producer.flush(SEND_SECONDS) == 0

    def count(self, topic):
        """How many records the topic has been given."""
        places = {TopicPartition(topic, at): OffsetSpec.latest() for at in range(PARTITIONS)}
        return sum(each.result().offset for each in self.admin.list_offsets(places).values())

    def rows(self, count, size):
        """So many rows with keys, and with values of that size."""
        value = f"concat(lpad(cast(id as string), 10, '0'), '{'x' * (size - 10)}')"
        return self.spark.range(count, numPartitions=PARTITIONS).selectExpr(
            "cast(id as string) as key", f"{value} as value"
        )

    def new_checkpoint(self):
        return tempfile.mkdtemp(dir=self.home)

    def tidy(self):
        """Collect the garbage of what ran before, so that nobody pays for the other's."""
        self.spark._jvm.System.gc()

    @contextmanager
    def memory_of_workers(self):
        """While it lasts the memory of each Python worker is looked at; the megabytes by worker."""
        found, done = {}, threading.Event()

        def look():
            while not done.wait(SAMPLES_EVERY_SECONDS):
                for pid, megabytes in worker_memory():
                    found.setdefault(pid, []).append(megabytes)

        looking = threading.Thread(target=look)
        looking.start()
        try:
            yield found
        finally:
            done.set()
            looking.join(STOP_SECONDS)


def worker_memory():
    """The resident megabytes of each Python worker.

    They are forks of Spark's daemons, which are forks of a child of this process.
    """
    parents, pages = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                # It has ended meanwhile.
                continue
            parents[int(entry.name)], pages[int(entry.name)] = int(fields[1]), int(fields[21])
    children = {pid for pid, parent in parents.items() if parent == os.getpid()}
    daemons = {pid for pid, parent in parents.items() if parent in children}
    megabytes = os.sysconf("SC_PAGE_SIZE") / 1e6
    return [(pid, pages[pid] * megabytes) for pid, parent in parents.items() if parent in daemons]


def thirds(samples):
    """The median of the first third, and of the last."""
    third = max(len(samples) // 3, 1)
    return median(samples[:third]), median(samples[-third:])
