"""A metadata log that is damaged (CLU-11): what is lost is told, and nobody begins without it."""

from pathlib import Path

import pytest

from strom.broker.host import Host
from strom.broker.startup import StartupError
from strom.testing.broker import LocalBroker
from tests.broker.api.conftest import create
from tests.conformance.raw import Raw

METADATA = "/data/__cluster_metadata-0"
SNAPSHOT_EACH_TIME = {"metadata.log.max.record.bytes.between.snapshots": "1"}


def broker_on(disk, settings=None):
    return LocalBroker(settings, directory=Path("/data"), host=Host(disk=disk))


def topics_on(disk, *new):
    """Make topics and return those that there are after a restart."""
    with broker_on(disk) as local, Raw(local.bootstrap) as raw:
        for each in new:
            create(raw, each)
    with broker_on(disk) as local:
        return set(local.broker.parts.image.topics_by_name)


def files(disk, *suffixes):
    return sorted(name for name, _ in disk.scan(METADATA) if name.endswith(suffixes))


def snapshots(disk):
    return files(disk, ".checkpoint")


def segments(disk):
    return files(disk, ".log")


def remove_log(disk, before):
    """Take away the segments that begin in front of a snapshot."""
    for name in files(disk, ".log", ".index", ".timeindex", ".snapshot"):
        if name < before:
            disk.remove(f"{METADATA}/{name}")


def refused(disk):
    with pytest.raises(StartupError) as told, broker_on(disk):
        pass
    assert str(told.value).startswith(f"cannot use {METADATA}: ")
    assert "\n" not in str(told.value)
    return str(told.value)


def test_without_a_whole_snapshot_of_what_was_before_nobody_begins(disk):
    with broker_on(disk, SNAPSHOT_EACH_TIME) as local, Raw(local.bootstrap) as raw:
        create(raw, "flug")
        create(raw, "wetter")
    # The next start writes who is there; with that alone a cluster would seem to be whole.
    with broker_on(disk):
        pass
    *older, newest = snapshots(disk)
    for each in older:
        disk.remove(f"{METADATA}/{each}")
    remove_log(disk, newest)
    disk.corrupt(f"{METADATA}/{newest}", 700)
    assert "there is no whole snapshot" in refused(disk)
    assert "flug-0" in disk.directories("/data")
    disk.corrupt(f"{METADATA}/{newest}", 700)
    assert topics_on(disk) == {"flug", "wetter"}


def test_a_log_that_ends_in_front_of_its_snapshot_goes_on_behind_it(disk):
    names = [f"flug{number}" for number in range(20)]
    with broker_on(disk, SNAPSHOT_EACH_TIME) as local, Raw(local.bootstrap) as raw:
        for each in names:
            create(raw, each)
    first, *others = segments(disk)
    for each in others:
        disk.remove(f"{METADATA}/{each}")
    disk.write(f"{METADATA}/{first}", b"")
    assert topics_on(disk, "neu") >= {*names[:-1], "neu"}


def test_a_vote_that_cannot_be_read_is_one_line(disk):
    assert topics_on(disk, "flug") == {"flug"}
    disk.write(f"{METADATA}/quorum-state", b'{"leaderId":1')
    assert "quorum-state cannot be read" in refused(disk)
    disk.remove(f"{METADATA}/quorum-state")
    assert topics_on(disk, "wetter") == {"flug", "wetter"}


def test_a_disk_that_cannot_be_read_is_one_line(disk):
    assert topics_on(disk, "flug") == {"flug"}
    disk.break_reads(METADATA)
    assert refused(disk) == f"cannot use {METADATA}: Input/output error"


def test_what_is_cut_off_is_told(disk, caplog):
    assert topics_on(disk, "flug") == {"flug"}
    *_, last = segments(disk)
    disk.write(f"{METADATA}/{last}", disk.read(f"{METADATA}/{last}") + b"torn")
    assert topics_on(disk) == {"flug"}
    assert "Cut 4 bytes off __cluster_metadata-0" in caplog.text
