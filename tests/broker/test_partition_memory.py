"""What a partition costs a broker that has thousands of them: about a kilobyte until it is used."""

import gc
import tracemalloc
from uuid import UUID

import pytest

from strom.log.checkpoints import HIGH_WATERMARK, RECOVERY_POINT
from strom.log.directory import LogDirectory, Meta
from strom.log.disk import RealDisk
from tests.broker.test_replicas import Following, a_topic

PARTITIONS = 300
PARTITION_BYTES_MAX = 1500


def held_bytes():
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.slow
def test_top_21_an_idle_partition_costs_about_a_kilobyte(tmp_path):
    disk, path = RealDisk(), str(tmp_path / "data")
    LogDirectory.format(disk, path, Meta(1, "cluster", UUID(int=9)))
    directory = LogDirectory.open(disk, path)
    following = Following(directory)
    # What is there once for all of them is there before the count begins.
    following.take(*a_topic(partitions=1, name="first", topic_id=UUID(int=6)))
    tracemalloc.start()
    try:
        before = held_bytes()
        following.take(*a_topic(partitions=PARTITIONS))
        for name in HIGH_WATERMARK, RECOVERY_POINT:
            directory.write_checkpoint(name, {("t", index): 0 for index in range(PARTITIONS)})
        held = held_bytes() - before
    finally:
        tracemalloc.stop()
        for each in following.replicas.partitions():
            each.log.close()
        directory.close(clean=False)
    assert held / PARTITIONS < PARTITION_BYTES_MAX
