"""What a stop and retention leave on disk: checkpoints, and files that go later."""

import errno

import pytest

from strom.broker.housekeeping import Housekeeping
from strom.log.directory import LogDirectory
from tests.broker.api.conftest import create, produce
from tests.broker.test_full_disk import TOPIC, broker_on, fill, on_loop
from tests.conformance.batches import batch
from tests.conformance.raw import Raw
from tests.patience import until


def noted(disk, what):
    return disk.read(f"/data/{what}-checkpoint").decode().split("\n")[1:-1]


def cut(raw, topic, offset):
    partition = {"partition_index": 0, "offset": offset}
    topics = [{"name": topic, "partitions": [partition]}]
    raw.ask("delete_records", 2, {"topics": topics, "timeout": 5000})


def test_a_clean_stop_notes_how_far_each_log_is(disk):
    """DSK-05, DSK-06, DSK-07."""
    with broker_on(disk) as local, Raw(local.bootstrap) as raw:
        create(raw, TOPIC, partitions=1)
        produce(raw, TOPIC, *[batch([b"v"])] * 3)
        cut(raw, TOPIC, 2)
    assert noted(disk, "replication-offset") == ["1", f"{TOPIC} 0 3"]
    assert noted(disk, "recovery-point-offset") == ["1", f"{TOPIC} 0 3"]
    assert noted(disk, "log-start-offset") == ["1", f"{TOPIC} 0 2"]


def test_retention_notes_at_once_where_logs_begin(disk):
    """DSK-21."""
    with broker_on(disk) as local, Raw(local.bootstrap) as raw:
        fill(local, raw, 3)
        create(raw, "kept", partitions=1, retention_ms=-1)
        produce(raw, "kept", *[batch([b"v"])] * 2)
        cut(raw, "kept", 1)
        on_loop(local, Housekeeping(local.broker.parts, None).retain())
        assert f"{TOPIC} 0 3" in noted(disk, "recovery-point-offset")
        assert noted(disk, "log-start-offset") == ["1", "kept 0 1"]


def deleted(disk, topic):
    return [name for name, _ in disk.scan(f"/data/{topic}-0") if name.endswith(".log.deleted")]


def test_what_retention_took_out_stays_for_the_delay_of_its_topic(disk):
    """DSK-19: `file.delete.delay.ms`."""
    with broker_on(disk) as local, Raw(local.bootstrap) as raw:
        fill(local, raw, 2)
        create(raw, "soon", partitions=1, file_delete_delay_ms=1)
        produce(raw, "soon", batch([b"v"]))
        on_loop(local, Housekeeping(local.broker.parts, None).retain())
        assert local.broker.parts.replicas.find("soon", 0).log.start_offset == 1
        until(lambda: not deleted(disk, "soon"))
        assert len(deleted(disk, TOPIC)) == 2


def noted_of(disk, topic):
    checkpoints = ("replication-offset", "recovery-point-offset", "log-start-offset")
    return [each for what in checkpoints for each in noted(disk, what) if each.startswith(topic)]


async def note_all(parts):
    keeping = Housekeeping(parts, None)
    await keeping.note_high_watermarks()
    await keeping.note_recovery_points()
    await keeping.note_start_offsets()


def test_a_topic_made_anew_is_not_taken_for_the_one_before_it(disk):
    """After a crash it would begin where the other began, without the records in front."""
    with broker_on(disk) as local, Raw(local.bootstrap) as raw:
        create(raw, TOPIC, partitions=1)
        produce(raw, TOPIC, *[batch([b"v"])] * 3)
        cut(raw, TOPIC, 2)
        on_loop(local, note_all(local.broker.parts))
        assert len(noted_of(disk, TOPIC)) == 3
        raw.ask("delete_topics", 5, {"topic_names": [TOPIC], "timeout": 5000})
        create(raw, TOPIC, partitions=1)
        assert noted_of(disk, TOPIC) == []
        produce(raw, TOPIC, batch([b"v"]))
        on_loop(local, note_all(local.broker.parts))
    assert noted(disk, "log-start-offset") == ["0"]


def clean_offset(local, topic):
    return local.broker.parts.replicas.find(topic, 0).log.clean_offset


def test_how_far_a_log_is_clean_is_known_after_a_start_and_not_of_one_made_anew(disk):
    """CMP-03. Else nothing of the new one is compacted up to there."""
    with broker_on(disk) as local, Raw(local.bootstrap) as raw:
        create(raw, TOPIC, partitions=1)
        produce(raw, TOPIC, *[batch([b"v"])] * 3)
    disk.write("/data/cleaner-offset-checkpoint", f"0\n1\n{TOPIC} 0 3\n".encode())
    with broker_on(disk) as local, Raw(local.bootstrap) as raw:
        assert clean_offset(local, TOPIC) == 3
        raw.ask("delete_topics", 5, {"topic_names": [TOPIC], "timeout": 5000})
        create(raw, TOPIC, partitions=1)
        produce(raw, TOPIC, *[batch([b"v"])] * 5)
    assert TOPIC not in disk.read("/data/cleaner-offset-checkpoint").decode()
    with broker_on(disk) as local:
        assert clean_offset(local, TOPIC) == 0


def test_what_is_noted_as_clean_beyond_the_log_is_another_ones(disk):
    with broker_on(disk) as local, Raw(local.bootstrap) as raw:
        create(raw, TOPIC, partitions=1)
        produce(raw, TOPIC, batch([b"v"]))
    disk.write("/data/cleaner-offset-checkpoint", f"0\n1\n{TOPIC} 0 9\n".encode())
    with broker_on(disk) as local:
        assert clean_offset(local, TOPIC) == 0


def test_what_a_crash_has_left_noted_of_a_topic_that_is_gone_is_forgotten(disk):
    with broker_on(disk):
        pass
    for what in ("replication-offset", "recovery-point-offset", "log-start-offset"):
        disk.write(f"/data/{what}-checkpoint", f"0\n1\n{TOPIC} 0 500\n".encode())
    with broker_on(disk) as local, Raw(local.bootstrap) as raw:
        create(raw, TOPIC, partitions=1)
        assert noted_of(disk, TOPIC) == []


@pytest.mark.parametrize(("checkpoint", "end"), [(b"0\n0\n", 1), (b"0\n7\n", 3), (None, 3)])
def test_a_gap_between_segments_is_a_loss_only_where_the_recovery_points_are_known(
    disk, checkpoint, end
):
    """What Apache Kafka's cleaner has left looks the same, and is all that there is."""
    with broker_on(disk) as local, Raw(local.bootstrap) as raw:
        fill(local, raw, 3)
    disk.write(f"/data/{TOPIC}-0/{1:020d}.log", b"")
    if checkpoint is None:
        disk.remove("/data/recovery-point-offset-checkpoint")
    else:
        disk.write("/data/recovery-point-offset-checkpoint", checkpoint)
    with broker_on(disk) as local:
        assert local.broker.parts.replicas.find(TOPIC, 0).log.end_offset == end


def test_a_topic_waits_for_room_to_forget_the_one_before_it(disk):
    with broker_on(disk) as local, Raw(local.bootstrap) as raw:
        create(raw, TOPIC, partitions=1)
        on_loop(local, note_all(local.broker.parts))
        raw.ask("delete_topics", 5, {"topic_names": [TOPIC], "timeout": 5000})
        replicas = local.broker.parts.replicas

        def refuse(*_):
            raise OSError(errno.ENOSPC, "full")

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(LogDirectory, "write_checkpoint", refuse)
            create(raw, TOPIC, partitions=1)
            assert replicas.find(TOPIC, 0) is None
            assert len(noted_of(disk, TOPIC)) == 2
        on_loop(local, Housekeeping(local.broker.parts, None).begin_logs())
        assert noted_of(disk, TOPIC) == []
        produce(raw, TOPIC, batch([b"v"]))


def test_a_full_directory_keeps_no_topic_from_another_one(disk):
    disk.make_directory("/other")
    directories = {"log.dirs": "/data,/other"}
    with broker_on(disk, **directories) as local, Raw(local.bootstrap) as raw:
        create(raw, TOPIC, partitions=2)
        on_loop(local, note_all(local.broker.parts))
        raw.ask("delete_topics", 5, {"topic_names": [TOPIC], "timeout": 5000})
        write = LogDirectory.write_checkpoint

        def refuse_one(directory, *given):
            if directory.path == "/data":
                raise OSError(errno.ENOSPC, "full")
            return write(directory, *given)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(LogDirectory, "write_checkpoint", refuse_one)
            create(raw, TOPIC, partitions=2)
            found = [local.broker.parts.replicas.find(TOPIC, index) for index in (0, 1)]
            assert [each.directory.path for each in found] == ["/other", "/other"]
