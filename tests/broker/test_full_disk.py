"""A full disk is no broken one: what cannot be written is tried again, and nothing is lost.

Also what a running broker does with the snapshots of its metadata, of which a full disk takes one.
A disk in memory stands under the broker.
"""

import asyncio
import contextlib
import errno
import logging
import os
from dataclasses import replace
from pathlib import Path

import pytest

from strom.broker.broker import StorageLostError
from strom.broker.host import Host
from strom.broker.housekeeping import Housekeeping
from strom.testing.broker import LocalBroker
from strom.testing.disk import FakeDisk
from tests.broker.api.conftest import create, produce
from tests.conformance.batches import batch
from tests.conformance.raw import Raw
from tests.patience import PATIENCE_SECONDS, until

TOPIC = "flug"
METADATA = "/data/__cluster_metadata-0"
#: What is done by the clock is done by the tests.
QUIET = dict.fromkeys(
    (
        "replica.high.watermark.checkpoint.interval.ms",
        "log.flush.offset.checkpoint.interval.ms",
        "log.flush.start.offset.checkpoint.interval.ms",
        "log.retention.check.interval.ms",
    ),
    str(24 * 60 * 60 * 1000),
)
SNAPSHOT_EACH_TIME = {"metadata.log.max.record.bytes.between.snapshots": "1"}


def broker_on(disk, **settings):
    return LocalBroker({**QUIET, **settings}, directory=Path("/data"), host=Host(disk=disk))


def on_loop(local, work):
    return asyncio.run_coroutine_threadsafe(work, local._loop).result(PATIENCE_SECONDS)


def log_of(local):
    return local.broker.parts.replicas.find(TOPIC, 0).log


async def roll(local):
    log_of(local).roll(local.broker.parts.host.now_ms())


def fill(local, raw, batches):
    """Write batches of one record, each into a segment of its own."""
    create(raw, TOPIC, partitions=1)
    for number in range(batches):
        if number:
            on_loop(local, roll(local))
        produce(raw, TOPIC, batch([b"v"]))


def produced(raw):
    data = {"index": 0, "records": bytes(batch([b"v"]))}
    topics = [{"name": TOPIC, "partition_data": [data]}]
    asked = {"acks": -1, "timeout": 5000, "topic_data": topics}
    return raw.ask("produce", 9, asked)["responses"][0]["partition_responses"][0]["error_code"]


def end_offset(raw):
    place = {"partition_index": 0, "timestamp": -1}
    asked = {"replica_id": -1, "topics": [{"name": TOPIC, "partitions": [place]}]}
    (found,) = raw.ask("list_offsets", 7, asked)["topics"][0]["partitions"]
    assert found["error_code"] == "none"
    return found["offset"]


@contextlib.contextmanager
def lost(disk, **settings):
    """The client of a broker that loses its directory in the block, and ends by itself."""
    local = broker_on(disk, **settings).start()
    with Raw(local.bootstrap) as raw:
        yield raw
        local._thread.join(PATIENCE_SECONDS)
    with pytest.raises(StorageLostError):
        local.stop()


def told(caplog, level):
    return [each.getMessage() for each in caplog.records if each.levelno == level]


def test_a_broker_whose_disk_is_full_for_a_while_goes_on(disk, caplog):
    with broker_on(disk) as local, Raw(local.bootstrap) as raw:
        fill(local, raw, 3)
        chores = Housekeeping(local.broker.parts, None)
        disk.is_full = True
        assert produced(raw) == "kafka_storage_error"
        for _ in range(2):
            on_loop(local, chores.note_high_watermarks())
            on_loop(local, chores.note_recovery_points())
        (warning,) = told(caplog, logging.WARNING)
        assert warning.startswith("The log directory /data is tried again later: [Errno 28]")
        assert end_offset(raw) == 3
        disk.is_full = False
        on_loop(local, chores.note_high_watermarks())
        assert b"\nflug 0 3\n" in disk.read("/data/replication-offset-checkpoint")
        assert produced(raw) == "none"
        disk.is_full = True
        on_loop(local, chores.note_high_watermarks())
        assert len(told(caplog, logging.WARNING)) == 2, "it is another time"
        disk.is_full = False
    with broker_on(disk) as local, Raw(local.bootstrap) as raw:
        assert end_offset(raw) == 4
    assert not told(caplog, logging.ERROR)


def test_a_batch_for_which_there_is_no_room_is_told_at_once(disk, caplog):
    """MON-12: there may be room for checkpoints, which are small."""
    with broker_on(disk) as local, Raw(local.bootstrap) as raw:
        fill(local, raw, 1)
        disk.is_full = True
        assert produced(raw) == produced(raw) == "kafka_storage_error"
        disk.is_full = False
    (warning,) = told(caplog, logging.WARNING)
    assert warning.startswith("The log directory /data is tried again later: [Errno 28]")
    assert not told(caplog, logging.ERROR)


def test_retention_makes_room_on_a_full_disk(disk, caplog):
    with broker_on(disk) as local, Raw(local.bootstrap) as raw:
        fill(local, raw, 3)
        log = log_of(local)

        async def retain():
            log.config = replace(log.config, retention_ms=1)
            await Housekeeping(local.broker.parts, None).retain()

        disk.is_full = True
        for _ in range(2):
            on_loop(local, retain())
            assert [each.base_offset for each in log.segments] == [2], "there is always one"
        disk.is_full = False
        on_loop(local, retain())
        assert [each.base_offset for each in log.segments] == [3]
        assert end_offset(raw) == 3
        assert produced(raw) == "none"
    with broker_on(disk) as local, Raw(local.bootstrap) as raw:
        assert end_offset(raw) == 4
    assert len(told(caplog, logging.WARNING)) == 1
    assert not told(caplog, logging.ERROR)


def test_a_stop_on_a_full_disk_is_no_clean_one_and_loses_nothing(disk):
    local = broker_on(disk).start()
    with Raw(local.bootstrap) as raw:
        fill(local, raw, 2)
        on_loop(local, Housekeeping(local.broker.parts, None).checkpoint_all())
        produce(raw, TOPIC, batch([b"later"]))
        disk.is_full = True
    with contextlib.suppress(StorageLostError):
        local.stop()
    assert not disk.exists("/data/.kafka_cleanshutdown")
    disk.is_full = False
    with broker_on(disk) as local, Raw(local.bootstrap) as raw:
        assert end_offset(raw) == 3


def test_records_are_deleted_once_that_can_be_written(disk):
    def delete(raw):
        place = {"partition_index": 0, "offset": 1}
        asked = {"topics": [{"name": TOPIC, "partitions": [place]}], "timeout": 5000}
        (found,) = raw.ask("delete_records", 2, asked)["topics"][0]["partitions"]
        return found["error_code"], log_of(local).start_offset

    with broker_on(disk) as local, Raw(local.bootstrap) as raw:
        fill(local, raw, 2)
        disk.is_full = True
        assert delete(raw) == ("kafka_storage_error", 0)
        disk.is_full = False
        assert delete(raw) == ("none", 1)


def error_of_coordinator(raw):
    """Ask for the offsets of a group, of whatever kind its coordinator's trouble is."""
    asked = {"groups": [{"group_id": "g", "topics": None}], "require_stable": False}
    return raw.ask("offset_fetch", 8, asked)["groups"][0]["error_code"]


def test_what_was_created_without_room_for_its_logs_is_served_once_there_is_some(disk, caplog):
    with broker_on(disk) as local, Raw(local.bootstrap) as raw:
        chores = Housekeeping(local.broker.parts, None)
        disk.fail_next("make_directory", errno.ENOSPC)
        create(raw, TOPIC, partitions=1)
        assert produced(raw) == "kafka_storage_error"
        on_loop(local, chores.begin_logs())
        assert produced(raw) == "none"
        disk.fail_next("make_directory", errno.ENOSPC)
        found = raw.ask("find_coordinator", 4, {"key_type": 0, "coordinator_keys": ["g"]})
        assert found["coordinators"][0]["error_code"] == "none"
        assert error_of_coordinator(raw) == "not_coordinator"
        on_loop(local, chores.begin_logs())
        assert error_of_coordinator(raw) == "none"
    with broker_on(disk) as local, Raw(local.bootstrap) as raw:
        assert end_offset(raw) == 1
    assert not told(caplog, logging.ERROR)


def create_flushed(raw, messages):
    setting = {"name": "flush.messages", "value": str(messages)}
    topic = {"name": TOPIC, "num_partitions": 1, "replication_factor": 1, "configs": [setting]}
    asked = {"topics": [topic], "timeout_ms": 5000, "validate_only": False}
    assert raw.ask("create_topics", 7, asked)["topics"][0]["error_code"] == "none"


class Crowded(FakeDisk):
    """A disk of a process that has no descriptor left."""

    is_crowded = False

    def open(self, path, *, create=False):
        if self.is_crowded:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return super().open(path, create=create)


def test_what_cannot_be_opened_to_be_synced_is_synced_later(caplog):
    disk = Crowded()
    disk.make_directory("/data")
    with broker_on(disk) as local, Raw(local.bootstrap) as raw:
        create_flushed(raw, messages=2)
        assert produced(raw) == "none"
        on_loop(local, roll(local))
        disk.is_crowded = True
        assert produced(raw) == "kafka_storage_error"
        assert log_of(local).recovery_point == 0, "what is not synced is not said to be"
        disk.is_crowded = False
        assert produced(raw) == "none"
        assert log_of(local).recovery_point == 3
    assert len(told(caplog, logging.WARNING)) == 1
    assert not told(caplog, logging.ERROR)


def test_a_sync_without_room_takes_the_directory_out_of_use(disk, caplog):
    """The system may have dropped what it could not write; the next sync would succeed."""
    with lost(disk) as raw:
        create_flushed(raw, messages=1)
        disk.fail_next("sync", errno.ENOSPC)
        assert produced(raw) == "kafka_storage_error"
    (error,) = told(caplog, logging.ERROR)
    assert error.startswith("The log directory /data failed ([Errno 28]")


def test_a_write_that_fails_takes_the_directory_out_of_use_at_once(disk, caplog):
    """Nobody may be led to a partition that takes nothing more."""
    with lost(disk) as raw:
        create(raw, TOPIC, partitions=1)
        disk.fail_next("write_at", errno.EIO)
        assert produced(raw) == "kafka_storage_error"
    (error,) = told(caplog, logging.ERROR)
    assert error.startswith("The log directory /data failed ([Errno 5]")


def committed(raw):
    """Commit an offset of a group without members; what is answered."""
    place = {"partition_index": 0, "committed_offset": 0}
    topics = [{"name": TOPIC, "partitions": [place]}]
    asked = {"group_id": "g", "generation_id_or_member_epoch": -1, "topics": topics}
    raw.ask("find_coordinator", 4, {"key_type": 0, "coordinator_keys": ["g"]})
    return raw.ask("offset_commit", 8, asked)["topics"][0]["partitions"][0]["error_code"]


def test_a_write_of_a_coordinator_that_fails_does_so_too(disk, caplog):
    with lost(disk, **{"offsets.topic.num.partitions": "1"}) as raw:
        create(raw, TOPIC, partitions=1)
        until(lambda: committed(raw), lambda code: code == "none")
        disk.is_full = True
        assert committed(raw) == "not_coordinator"
        disk.is_full = False
        (warning,) = told(caplog, logging.WARNING)
        assert warning.startswith("The log directory /data is tried again later: [Errno 28]")
        until(lambda: committed(raw), lambda code: code == "none")
        disk.fail_next("write_at", errno.EIO)
        assert committed(raw) == "not_coordinator"
    (error,) = told(caplog, logging.ERROR)
    assert error.startswith("The log directory /data failed ([Errno 5]")


def test_what_was_to_be_written_beside_a_write_that_fails_is_refused_too(disk):
    """Its partition is offline by then: who is told of success would have written to nobody."""
    with lost(disk) as raw:
        create(raw, TOPIC, partitions=2)
        data = [{"index": index, "records": bytes(batch([b"v"]))} for index in (0, 1)]
        asked = {"acks": 1, "topic_data": [{"name": TOPIC, "partition_data": data}]}
        disk.fail_next("write_at", errno.EIO)
        (answer,) = raw.ask("produce", 9, asked)["responses"]
        told = [each["error_code"] for each in answer["partition_responses"]]
        assert told == ["kafka_storage_error"] * 2
    assert dict(disk.scan(f"/data/{TOPIC}-1"))[f"{0:020}.log"] == 0


# Snapshots of the metadata.


def snapshots(disk):
    """The names of the snapshots, but for the one that a cluster begins with."""
    names = [name for name, _ in disk.scan(METADATA) if name.endswith(".checkpoint")]
    return [name for name in names if not name.startswith(f"{0:020}")]


def has_all(local, disk):
    """Whether the newest snapshot has all that was decided."""
    newest = snapshots(disk)[-1:]
    ends = [int(name.partition("-")[0]) for name in newest]
    return ends == [local.broker.parts.quorum.end_offset]


def topics(raw):
    return {each["name"] for each in raw.ask("metadata", 12, {"topics": None})["topics"]}


def change(raw, retention_ms):
    """Change the cluster in a way that no log has to follow."""
    setting = {"name": "retention.ms", "config_operation": 0, "value": str(retention_ms)}
    resource = {"resource_type": 2, "resource_name": TOPIC, "configs": [setting]}
    asked = {"resources": [resource], "validate_only": False}
    raw.send("incremental_alter_configs", 1, asked)


def test_a_broker_writes_snapshots_and_starts_from_the_newest(disk):
    with broker_on(disk, **SNAPSHOT_EACH_TIME) as local, Raw(local.bootstrap) as raw:
        names = {f"topic-{number}" for number in range(3)}
        for name in sorted(names):
            before = snapshots(disk)
            create(raw, name, partitions=1)
            until(lambda: snapshots(disk) != before)  # noqa: B023 - called at once
    first = min(name for name, _ in disk.scan(METADATA) if name.endswith(".log"))
    newest = int(snapshots(disk)[-1].partition("-")[0])
    assert int(first.removesuffix(".log")) < newest
    disk.remove(f"{METADATA}/{first}")
    with broker_on(disk) as local, Raw(local.bootstrap) as raw:
        assert topics(raw) >= names


def test_a_snapshot_for_which_there_is_no_room_is_written_later(disk, caplog):
    with broker_on(disk, **SNAPSHOT_EACH_TIME) as local, Raw(local.bootstrap) as raw:
        create(raw, TOPIC, partitions=1)
        until(lambda: has_all(local, disk))
        disk.fail_next("rename", errno.ENOSPC)
        change(raw, 10**6)
        assert raw.receive("incremental_alter_configs", 1)
        until(lambda: told(caplog, logging.WARNING))
        assert told(caplog, logging.WARNING)[0].startswith("There is no snapshot of the metadata")
        change(raw, 10**7)
        assert raw.receive("incremental_alter_configs", 1)
        until(lambda: has_all(local, disk))
    assert not told(caplog, logging.ERROR)


def test_a_disk_that_breaks_over_a_snapshot_ends_the_broker_with_one_line(disk, caplog):
    local = broker_on(disk, **SNAPSHOT_EACH_TIME).start()
    with Raw(local.bootstrap) as raw:
        create(raw, TOPIC, partitions=1)
        until(lambda: has_all(local, disk))
        disk.fail_next("rename", errno.EIO)
        change(raw, 10**6)
        local._thread.join(PATIENCE_SECONDS)
    with pytest.raises(StorageLostError) as caught:
        local.stop()
    assert str(caught.value) == "the metadata log in /data failed: Input/output error"
    assert not told(caplog, logging.ERROR)
