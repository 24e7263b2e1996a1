"""Exactly once by Java's clients: Kafka's own copier, which is killed like its broker.

Rows: TXN-07, TXN-12, STR-13. Its producer speaks version 2 of transactions, which librdkafka does
not, and tells the group's generation with the offsets (KIP-447); now and then it aborts.
"""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from tests import nodes
from tests.conformance.exactly_once import PARTITIONS, PAUSE, read_committed
from tests.conformance.raw import Raw
from tests.conformance.test_exactly_once import SEED, SETTINGS, committed_offset, create, feed

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(300)]

COPIER = "org.apache.kafka.tools.TransactionalMessageCopier"
GROUP = "java-copiers"
COUNT = 4000
LATEST = -1
PATIENCE_SECONDS = 200
#: Who is killed, one after the other: a group waits some seconds for a member that is dead.
VICTIMS = ["broker", "copier", "broker", "broker"]


class Copier:
    """The process of the copier; it ends when it has come to where the source ended."""

    def __init__(self, bootstrap):
        self.command = [
            *(sys.executable, nodes.PEER, "tool", COPIER, "--broker-list", bootstrap),
            *("--input-topic", "source", "--input-partition", "0", "--output-topic", "target"),
            *("--transactional-id", "java-copier", "--transaction-timeout", "10000"),
            *("--consumer-group", GROUP, "--transaction-size", "20", "--enable-random-aborts"),
            *("--group-mode", "--use-group-metadata"),
        ]
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            self.command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def kill(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def copy_and_kill(broker, copier, dice):
    """Kill one or the other, each when a share of all is copied that the dice say."""
    victims = [{"broker": broker, "copier": copier}[each] for each in VICTIMS]
    shares = sorted(dice.uniform(0, 0.8) for _ in VICTIMS)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (code := copier.process.poll()) != 0:
        assert time.monotonic() < deadline, "it was not copied"
        if code is not None:
            copier.start()
        if victims and end_of(broker, "target") > shares[0] * COUNT:
            del shares[0]
            victim = victims.pop(0)
            victim.kill()
            victim.start()
        PAUSE.wait(0.01)
    assert len(victims) < len(VICTIMS), "nobody was killed"


def end_of(broker, topic):
    """The end of the first partition, with what may still be aborted, and markers."""
    place = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": LATEST}
    asked = {"replica_id": -1, "isolation_level": 0}
    asked["topics"] = [{"name": topic, "partitions": [place]}]
    with Raw(broker.bootstrap) as raw:
        (told,) = raw.ask("list_offsets", 7, asked)["topics"][0]["partitions"]
    return told["offset"]


def test_str_13_txn_12_javas_copier_copies_each_record_once(broker_process):
    if reason := nodes.java_missing():
        pytest.skip(reason)
    broker = broker_process(**SETTINGS)
    create(broker, "source", "target")
    feed(broker, "source", COUNT)
    copier = Copier(broker.bootstrap)
    try:
        copy_and_kill(broker, copier, random.Random(SEED))
    finally:
        copier.kill()
    expected = [b"%d" % each for each in range(COUNT)]
    found = read_committed(broker.bootstrap, "target", PARTITIONS)
    assert found == dict.fromkeys(range(PARTITIONS), expected)
    for partition in range(PARTITIONS):
        assert committed_offset(broker, GROUP, "source", partition) == COUNT
    broker.stop()
