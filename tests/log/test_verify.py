"""Verifying a data directory offline: what is wrong is found, what is right is left in peace."""

import struct

import pytest

from strom.log.verify import Problem, verify_directory, verify_partition
from strom.records.batch import patch_place
from strom.records.record import Record, write_batch
from tests.log.stored import SEGMENT, TORN_SEGMENT, write_partition

STEM = "00000000000000000000"


@pytest.fixture
def partition(tmp_path):
    """A partition's directory without fault."""
    directory = tmp_path / "flugdaten-0"
    directory.mkdir()
    write_partition(directory)
    whole = write_batch([Record(100, 4000, b"k", b"v")], leader_epoch=5)
    (directory / TORN_SEGMENT).write_bytes(whole)
    return directory


@pytest.fixture
def data_directory(partition):
    directory = partition.parent
    identity = "version=1\ncluster.id=abc\nnode.id=1\ndirectory.id=def\n"
    (directory / "meta.properties").write_text("#\n" + identity)
    (directory / "recovery-point-offset-checkpoint").write_text("0\n1\nflugdaten 0 101\n")
    (directory / "replication-offset-checkpoint").write_text("0\n1\nflugdaten 0 100\n")
    (directory / "log-start-offset-checkpoint").write_text("0\n0\n")
    return directory


def complaints(partition):
    return [
        (problem.path.rpartition("/")[2], problem.what) for problem in verify_partition(partition)
    ]


def test_good_partition_has_no_problem(partition):
    assert verify_partition(str(partition)) == []


def test_good_directory_has_no_problem(data_directory):
    assert list(verify_directory(str(data_directory))) == []


def test_every_flipped_byte_of_a_batch_is_found(partition):
    data = (partition / TORN_SEGMENT).read_bytes()
    for at in range(len(data)):
        broken = bytearray(data)
        broken[at] ^= 0x40
        (partition / TORN_SEGMENT).write_bytes(broken)
        # A higher offset or leader epoch is as good as any, for all that one segment tells.
        assert verify_partition(str(partition)) or at < 16


def test_place_of_a_bad_checksum_is_told(partition):
    data = bytearray((partition / SEGMENT).read_bytes())
    data[100 + 17] ^= 1
    (partition / SEGMENT).write_bytes(data)
    path = str(partition / SEGMENT)
    assert verify_partition(str(partition)) == [Problem(path, 100, "the checksum does not fit")]
    assert str(Problem(path, 100, "x")) == f"{path} at 100: x"
    assert str(Problem(path, None, "x")) == f"{path}: x"


def test_torn_tail_is_told(partition):
    with (partition / TORN_SEGMENT).open("ab") as file:
        file.write(bytes(40))
    assert complaints(str(partition)) == [(TORN_SEGMENT, "40 bytes that are no whole batch")]


def test_offsets_that_fall_are_told(partition):
    batch = write_batch([Record(100, 4000, b"k", b"v")], leader_epoch=5)
    (partition / TORN_SEGMENT).write_bytes(batch * 2)
    assert complaints(str(partition)) == [(TORN_SEGMENT, "offset 100 after 100")]


def test_epochs_that_fall_are_told(partition):
    batch = write_batch([Record(100, 4000, b"k", b"v")], leader_epoch=5)
    later = bytearray(batch)
    patch_place(later, 101, 4)
    (partition / TORN_SEGMENT).write_bytes(batch + later)
    assert complaints(str(partition)) == [(TORN_SEGMENT, "leader epoch 4 after 5")]


def test_segments_that_overlap_are_told(partition):
    (partition / "00000000000000000020.log").write_bytes(b"")
    assert ("00000000000000000020.log", "begins before offset 34") in complaints(str(partition))


def test_index_that_points_elsewhere_is_told(partition):
    (partition / f"{STEM}.index").write_bytes(struct.pack(">iiii", 10, 100, 30, 339))
    assert complaints(str(partition)) == [
        (f"{STEM}.index", "offset 10 for a batch that ends with 11"),
        (f"{STEM}.index", "offset 30: no batch at position 339"),
    ]


def test_time_index_that_is_wrong_is_told(partition):
    (partition / f"{STEM}.timeindex").write_bytes(struct.pack(">qiqi", 2501, 11, 9000, 50))
    assert complaints(str(partition)) == [
        (f"{STEM}.timeindex", "time 2501 for offset 11, whose batch has 2500"),
        (f"{STEM}.timeindex", "time 9000: no offset 50"),
    ]


@pytest.mark.parametrize(
    ("producer_id", "last_offset"),
    [(6, 30), (5, 29), (5, 31), (5, 77)],
    ids=["other producer", "no marker", "other marker", "no batch"],
)
def test_aborted_transaction_without_marker_is_told(partition, producer_id, last_offset):
    entry = struct.pack(">hqqqq", 0, producer_id, 29, last_offset, 31)
    (partition / f"{STEM}.txnindex").write_bytes(entry)
    assert complaints(str(partition)) == [(f"{STEM}.txnindex", f"no abort marker at {last_offset}")]


def test_damaged_snapshot_is_told(partition):
    path = partition / "00000000000000000100.snapshot"
    path.write_bytes(path.read_bytes()[:-1])
    assert complaints(str(partition)) == [
        ("00000000000000000100.snapshot", "the snapshot of the producers is damaged")
    ]


def test_unfinished_metadata_snapshot_is_told(partition):
    path = partition / "00000000000000000007-0000000002.checkpoint"
    path.write_bytes(path.read_bytes()[:83])
    assert complaints(str(partition)) == [
        (path.name, "the snapshot has no footer: it was not finished")
    ]
    path.write_bytes(b"")
    assert (path.name, "the snapshot has no header") in complaints(str(partition))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("0\n2\n4 29\n3 0\n", "the epochs do not ascend"),
        ("0\n1\n3 0\n", "epoch 5 of the last batch is missing"),
        ("0\n9\n3 0\n", "unreadable"),
        ("0\n1\nthree 0\n", "unreadable"),
    ],
)
def test_wrong_epochs_are_told(partition, text, what):
    (partition / "leader-epoch-checkpoint").write_text(text)
    assert what in complaints(str(partition))[0][1]


def test_topic_id_must_be_there(partition):
    (partition / "partition.metadata").write_text("version: 0\n")
    assert complaints(str(partition)) == [("partition.metadata", "no topic id")]


def test_directory_without_segment_is_told(tmp_path):
    assert [problem.what for problem in verify_partition(str(tmp_path))] == ["no segment"]


def test_identity_must_be_whole(data_directory):
    (data_directory / "meta.properties").write_text("version=1\ncluster.id=\nnode.id=1\n")
    told = [problem.what for problem in verify_directory(str(data_directory))]
    assert told == ["cluster.id is missing", "directory.id is missing"]
    (data_directory / "meta.properties").unlink()
    (told,) = verify_directory(str(data_directory))
    assert "never formatted" in told.what


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("0\n1\nflugdaten 0 102\n", "flugdaten-0: offset 102 is beyond the log's end 101"),
        ("0\n1\nflugdaten 1 0\n", "flugdaten-1 has no directory"),
        ("0\n2\nflugdaten 0 1\n", "unreadable"),
        ("0\n1\nflugdaten zero 1\n", "unreadable"),
        ("7\n0\n", "unreadable"),
    ],
)
def test_checkpoint_that_lies_is_told(data_directory, text, what):
    (data_directory / "recovery-point-offset-checkpoint").write_text(text)
    (told,) = verify_directory(str(data_directory))
    assert what in told.what


def test_checkpoint_before_the_log_is_told(data_directory, partition):
    for path in partition.glob(f"{STEM}.*"):
        path.unlink()
    (data_directory / "recovery-point-offset-checkpoint").write_text("0\n1\nflugdaten 0 7\n")
    (told,) = verify_directory(str(data_directory))
    assert told.what == "flugdaten-0: offset 7 is before the log's start 100"


def test_directories_on_their_way_out_are_left_alone(data_directory):
    for name in ("flugdaten-1.0123456789abcdef0123456789abcdef-delete", "lost+found"):
        (data_directory / name).mkdir()
    assert list(verify_directory(str(data_directory))) == []
