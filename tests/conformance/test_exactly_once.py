"""Exactly once, whoever is killed: what is read, written and committed is one thing or nothing.

Rows: TXN-07, TXN-12, ACK-06, STR-13. The broker and its clients are killed at random points; then a
judge reads what careful readers see: nothing lost, nothing twice, nothing out of order, the offsets
of the groups where the records are, and nothing left open.
"""

import os
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.conformance.exactly_once import (
    COPIED_MAX,
    NUMBERS_MAX,
    PARTITIONS,
    PAUSE,
    CopierProcess,
    end_offsets,
    other_topic,
    read_committed,
    run_lives,
)
from tests.conformance.raw import Raw

SEED = int(os.environ.get("STROM_CRASH_SEED", "4711"))
SOAK_SECONDS = float(os.environ.get("STROM_SOAK_SECONDS", "0"))
PATIENCE_SECONDS = 240
#: In each round; a start takes longer than the work.
KILLS_MAX = 6
#: So many numbers in each round, for each of two workers: with NUMBERS_MAX in a transaction that
#: is a thousand transactions at least, and half as many again as the dice fall.
GOAL = 1000
COPIERS = "target-copiers"
SETTINGS = {
    "transaction_abort_timed_out_transaction_cleanup_interval_ms": 500,
    "group_initial_rebalance_delay_ms": 0,
    "group_min_session_timeout_ms": 500,
    # Small segments: rolls and snapshots of producers are part of it.
    "log_segment_bytes": 1 << 20,
}

pytestmark = [pytest.mark.soak, pytest.mark.slow, pytest.mark.timeout(600)]


def seed_of_soak():
    """A new seed each time, unless one is given that failed."""
    return int(os.environ.get("STROM_CRASH_SEED") or time.time_ns())


def create(process, *names, partitions=PARTITIONS):
    admin = AdminClient({"bootstrap.servers": process.bootstrap, "log_level": 0})
    for future in admin.create_topics([NewTopic(each, partitions, 1) for each in names]).values():
        future.result()


def committed_offset(process, group, topic, partition):
    """What the group has committed, once no transaction can change it any more."""
    place = {"name": topic, "partition_indexes": [partition]}
    asked = {"groups": [{"group_id": group, "topics": [place]}], "require_stable": True}
    deadline = time.monotonic() + PATIENCE_SECONDS
    with Raw(process.bootstrap) as raw:
        while time.monotonic() < deadline:
            (told,) = raw.ask("offset_fetch", 9, asked)["groups"]
            if told["error_code"] == "none":
                (found,) = told["topics"][0]["partitions"]
                if found["error_code"] == "none":
                    return found["committed_offset"]
            PAUSE.wait(0.02)
    raise AssertionError(f"{group}: the offset of {topic}-{partition} is not stable: {told}")


class Killer:
    """Kills the broker now and then, and starts it again."""

    def __init__(self, process, dice):
        self.process, self.dice = process, dice
        self.is_over = threading.Event()
        self.kills = 0
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()

    def run(self):
        while self.kills < KILLS_MAX and not self.is_over.wait(self.dice.uniform(0.02, 1)):
            self.process.kill()
            self.process.start()
            self.kills += 1


@pytest.mark.parametrize("version", [1, 2], ids=["version 1", "version 2"])
def test_txn_12_whoever_dies_each_number_is_there_once(broker_process, version, record_property):
    seed = seed_of_soak() if SOAK_SECONDS else SEED + version
    dice = random.Random(seed)
    process = broker_process(**SETTINGS)
    names = ["a", "b"]
    create(process, *names)
    create(process, *map(other_topic, names), partitions=1)
    done, end = 0, time.monotonic() + SOAK_SECONDS / 4
    total, kills = 0, 0
    while done == 0 or time.monotonic() < end:
        deadline = time.monotonic() + PATIENCE_SECONDS
        with Killer(process, dice) as killer, ThreadPoolExecutor(len(names)) as pool:
            lives = [
                pool.submit(
                    run_lives,
                    process,
                    name,
                    version=version,
                    seed=dice.random(),
                    end=done + GOAL,
                    deadline=deadline,
                )
                for name in names
            ]
            transactions = sum(each.result() for each in lives)
        done += GOAL
        total, kills = total + transactions, kills + killer.kills
        assert transactions >= len(names) * GOAL // NUMBERS_MAX
        assert killer.kills, "nobody was killed"
        for name in names:
            expected = [b"%d" % each for each in range(done)]
            found = read_committed(process.bootstrap, name, PARTITIONS)
            assert found == dict.fromkeys(range(PARTITIONS), expected), f"seed {seed}"
            also = read_committed(process.bootstrap, other_topic(name), 1)
            assert also == {0: expected}, f"seed {seed}"
            assert committed_offset(process, f"{name}-group", name, 0) == done, f"seed {seed}"
    record_property("transactions", total)
    record_property("kills of the broker", kills)
    process.stop()


def feed(process, topic, count):
    producer = Producer({"bootstrap.servers": process.bootstrap, "enable.idempotence": True})
    for number in range(count):
        for partition in range(PARTITIONS):
            producer.produce(topic, b"%d" % number, partition=partition)
        producer.poll(0)
    assert producer.flush(PATIENCE_SECONDS) == 0


def test_str_13_a_group_of_copiers_copies_each_record_once(
    broker_process, tmp_path, record_property
):
    """librdkafka's consumers and producers, killed like the broker; other members go on."""
    seed = seed_of_soak() if SOAK_SECONDS else SEED
    dice = random.Random(seed)
    process = broker_process(**SETTINGS)
    create(process, "source", "target")
    count = 3000 if not SOAK_SECONDS else round(50 * SOAK_SECONDS)
    feed(process, "source", count)
    copiers = [
        CopierProcess(tmp_path / name, process.bootstrap, "source", "target", name, dice.random())
        for name in ("copier-0", "copier-1")
    ]
    try:
        copy_and_kill(process, copiers, count, dice, seed)
    finally:
        for each in copiers:
            each.kill()
    found = read_committed(process.bootstrap, "target", PARTITIONS)
    expected = [b"%d" % each for each in range(count)]
    assert found == dict.fromkeys(range(PARTITIONS), expected), f"seed {seed}"
    ended = sum(each.tally.stat().st_size for each in copiers)
    # Who is killed may have ended one that it could not tell of any more.
    assert ended + sum(each.lives for each in copiers) >= PARTITIONS * count // COPIED_MAX
    record_property("transactions", ended)
    process.stop()


def copy_and_kill(process, copiers, count, dice, seed):
    """Kill one or the other until all is copied."""
    # Then nobody is killed any more: with a kill every second a group hardly ever settles.
    quiet = time.monotonic() + SOAK_SECONDS
    deadline = quiet + PATIENCE_SECONDS
    kills = 0
    while not is_copied(process, count):
        assert time.monotonic() < deadline, f"seed {seed}: not done: {how_far(process)}"
        for each in copiers:
            each.start()
        PAUSE.wait(dice.uniform(0.2, 2))
        if kills < KILLS_MAX or time.monotonic() < quiet:
            kills += 1
            victim = dice.choice([process, *copiers])
            victim.kill()
            victim.start()


def is_copied(process, count):
    with Raw(process.bootstrap) as raw:
        raw.ask("find_coordinator", 4, {"key_type": 0, "coordinator_keys": [COPIERS]})
    places = range(PARTITIONS)
    return all(committed_offset(process, COPIERS, "source", each) == count for each in places)


def how_far(process):
    """Who may be waiting for whom: the group, the transactions, where careful readers stop."""
    with Raw(process.bootstrap) as raw:
        (group,) = raw.ask("describe_groups", 5, {"groups": [COPIERS]})["groups"]
        transactions = raw.ask("list_transactions", 0, {})["transaction_states"]
    done = [committed_offset(process, COPIERS, "source", each) for each in range(PARTITIONS)]
    ends = [end_offsets(process.bootstrap, "target", PARTITIONS, each) for each in (0, 1)]
    return {
        "committed": done,
        "group": (group["group_state"], len(group["members"])),
        "transactions": {
            each["transactional_id"]: each["transaction_state"] for each in transactions
        },
        "ends": ends,
    }
