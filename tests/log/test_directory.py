"""A log directory: its owner, its lock, the mark of a clean stop, its partitions."""

from random import Random
from uuid import UUID

import pytest

from strom.log.checkpoints import HIGH_WATERMARK, RECOVERY_POINT
from strom.log.directory import (
    CLEAN_SHUTDOWN,
    LogDirectory,
    Meta,
    UnformattedDirectoryError,
    parse_name,
    read_id,
    read_meta,
    write_id,
)
from tests.log.making import new_disk

META = Meta(1, "AZF4pErPRESyAlFEZ7FiHw", read_id("ARm3MfhaQ6ywDUXlPb3wJw"))
TOPIC_ID = UUID(int=0x1234567890)


def formatted():
    disk = new_disk()
    LogDirectory.format(disk, "/data", META)
    return disk


def test_dsk_02_03_a_fresh_directory_has_its_files():
    disk = formatted()
    assert sorted(name for name, _ in disk.scan("/data")) == [
        "cleaner-offset-checkpoint",
        "log-start-offset-checkpoint",
        "meta.properties",
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
    ]
    assert LogDirectory.open(disk, "/data").meta == META
    assert disk.read("/data/recovery-point-offset-checkpoint") == b"0\n0\n"


def test_meta_properties_of_kafka_are_read():
    kafkas = (
        b"#\n#Mon Nov 16 03:47:43 UTC 2026\nnode.id=1\ndirectory.id=ARm3MfhaQ6ywDUXlPb3wJw\n"
        b"version=1\ncluster.id=AZF4pErPRESyAlFEZ7FiHw\n"
    )
    assert read_meta(kafkas) == META
    for damaged in (b"", kafkas[:60], kafkas.replace(b"version=1", b"version=0"), b"\xff\xfe"):
        with pytest.raises(UnformattedDirectoryError):
            read_meta(damaged)


def test_a_second_one_is_kept_out():
    disk = formatted()
    first = LogDirectory.open(disk, "/data")
    with pytest.raises(BlockingIOError):
        LogDirectory.open(disk, "/data")
    first.close(clean=False)
    LogDirectory.open(disk, "/data")


def test_an_unformatted_directory_is_told():
    with pytest.raises(UnformattedDirectoryError):
        LogDirectory.open(new_disk(), "/data")


def test_the_mark_of_a_clean_stop_holds_for_one_start():
    disk = formatted()
    directory = LogDirectory.open(disk, "/data")
    assert not directory.was_clean
    directory.close(clean=True, broker_epoch=42)
    assert disk.read(f"/data/{CLEAN_SHUTDOWN}") == b'{"version":0,"brokerEpoch":42}'
    disk.crash()
    directory = LogDirectory.open(disk, "/data")
    assert (directory.was_clean, directory.clean_epoch) == (True, 42)
    disk.crash(Random(1))
    assert not LogDirectory.open(disk, "/data").was_clean


def test_a_failed_directory_is_never_said_to_be_clean():
    disk = formatted()
    directory = LogDirectory.open(disk, "/data")
    directory.failed = OSError(5, "broken")
    directory.close(clean=True)
    assert not LogDirectory.open(disk, "/data").was_clean


def test_an_unchanged_checkpoint_is_not_written_again():
    disk = formatted()
    directory = LogDirectory.open(disk, "/data")
    directory.write_checkpoint(HIGH_WATERMARK, {("a", 0): 5})
    changes = disk.changes
    directory.write_checkpoint(HIGH_WATERMARK, {("a", 0): 5})
    assert disk.changes == changes
    assert directory.high_watermarks() == {("a", 0): 5}


def test_a_damaged_recovery_checkpoint_makes_the_start_an_unclean_one():
    disk = formatted()
    LogDirectory.open(disk, "/data").close(clean=True)
    disk.write(f"/data/{RECOVERY_POINT}", b"0\n7\n")
    directory = LogDirectory.open(disk, "/data")
    assert directory.was_clean
    assert directory.recovery_points() == {}
    assert not directory.was_clean
    assert directory.points_lost


def test_a_recovery_checkpoint_that_is_gone_is_not_one_without_entries():
    disk = formatted()
    directory = LogDirectory.open(disk, "/data")
    assert directory.recovery_points() == {}
    assert not directory.points_lost
    disk.remove(f"/data/{RECOVERY_POINT}")
    assert directory.recovery_points() == {}
    assert directory.points_lost


def test_partitions_are_listed_with_their_topic_ids():
    disk = formatted()
    directory = LogDirectory.open(disk, "/data")
    for name in ("a-0", "a-b-12", "__cluster_metadata-0", "lost+found", "x-1.deadbeef-delete"):
        disk.make_directory(f"/data/{name}")
    directory.write_topic_id("/data/a-0", TOPIC_ID)
    assert disk.read("/data/a-0/partition.metadata") == (
        b"version: 0\ntopic_id: AAAAAAAAAAAAAAASNFZ4kA"
    )
    disk.write("/data/a-b-12/partition.metadata", b"version: 0\ntopic_id: %%%")
    disk.make_directory(directory.future_path("c", 3, "0123456789abcdef0123456789abcdef"))
    found = directory.list_partitions()
    assert [(each.topic, each.index, each.topic_id, each.is_future) for each in found] == [
        ("a", 0, TOPIC_ID, False),
        ("a-b", 12, None, False),
        ("c", 3, None, True),
    ]
    assert directory.list_deleted() == ["/data/x-1.deadbeef-delete"]


def test_dsk_18_names_of_deleted_partitions_stay_within_what_a_disk_allows():
    directory = LogDirectory.open(formatted(), "/data")
    path = directory.deleted_path("t" * 249, 7, "0123456789abcdef0123456789abcdef")
    name = path.removeprefix("/data/")
    assert len(name) == 255
    assert name.endswith("-7.0123456789abcdef0123456789abcdef-delete")
    assert parse_name(name) is None


def test_ids_are_printed_as_kafka_prints_them():
    assert write_id(META.directory_id) == "ARm3MfhaQ6ywDUXlPb3wJw"
