"""Files that Apache Kafka 4.3.1 wrote and closed, and ours of the same batches: the same bytes.

The topic had index.interval.bytes=200 and segment.ms=5000; an idempotent producer wrote 48
records, then a transactional one aborted, committed and aborted.
"""

import json
from pathlib import Path

import pytest

from strom.log.config import LogConfig
from strom.testing.disk import FakeDisk
from tests.log.making import NOW, aborted, first_at, new_disk, open_log, values_of

KAFKAS = {
    name: bytes.fromhex(content)
    for name, content in json.loads(Path(__file__).with_name("golden.json").read_text()).items()
}
CONFIG = LogConfig(index_interval_bytes=200, segment_ms=5000)
PATH = "/data/golden-0"
END = 55


def kafkas_disk(allocated: int = 0) -> FakeDisk:
    """Return a disk with Kafka's directory; allocated zeros are as after a crash."""
    disk = new_disk()
    disk.make_directory(PATH)
    for name, content in KAFKAS.items():
        is_index = name.startswith(f"{49:020d}") and name.endswith(("0.index", "timeindex"))
        disk.write(f"{PATH}/{name}", content + bytes(allocated if is_index else 0))
    return disk


def kafkas_log(disk: FakeDisk, *, clean: bool = True, recovery_point: int = END):
    return open_log(disk, CONFIG, path=PATH, clean=clean, recovery_point=recovery_point)


def test_a_directory_that_kafka_closed_is_opened_and_read():
    log = kafkas_log(kafkas_disk())
    assert log.end_offset == END
    assert [each.base_offset for each in log.segments] == [0, 20, 41, 49]
    assert len(values_of(log)) == END
    assert [each[1:3] for each in aborted(log, 0, END)] == [(48, 49), (52, 53)]
    assert first_at(log, NOW + 6000, END).timestamp_ms == NOW + 6000
    assert log.epochs.entries == ((0, 0),)
    assert log.last_stable_offset(END) == END
    assert len(log.producers) == 2


def test_the_same_batches_give_the_same_files():
    kafkas = kafkas_log(kafkas_disk())
    disk = new_disk()
    ours = kafkas_log(disk, recovery_point=0)
    for _, batch in kafkas.read_batches(0):
        ours.append_as_follower(batch, now_ms=NOW)
    ours.close()
    written = {name: disk.read(f"{PATH}/{name}") for name, _ in disk.scan(PATH)}
    expected = {name: content for name, content in KAFKAS.items() if name != "partition.metadata"}
    assert written == expected


@pytest.mark.parametrize("recovery_point", [0, 20, 48, 49, END])
@pytest.mark.parametrize("allocated", [0, 5, 4096])
def test_recovering_kafkas_directory_gives_the_same_files(recovery_point, allocated):
    disk = kafkas_disk(allocated)
    log = kafkas_log(disk, clean=False, recovery_point=recovery_point)
    assert log.end_offset == END
    assert log.cut_bytes == 0
    log.close()
    for name, content in KAFKAS.items():
        assert disk.read(f"{PATH}/{name}") == content, name


def test_allocated_zeros_behind_an_index_are_no_entries_when_appending_goes_on():
    disk = kafkas_disk(4096)
    log = kafkas_log(disk)
    assert len(values_of(log)) == END
    log.active.max_time_ms += 1
    log.active.finish_times()
    log.active.write_indexes()
    assert dict(disk.scan(PATH))[f"{49:020d}.timeindex"] == 36
