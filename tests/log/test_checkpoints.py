"""Checkpoint files in Kafka's form (DSK-04 … DSK-08)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strom.log.checkpoints import DamagedCheckpointError, read_checkpoint, write_checkpoint
from tests.log.making import new_disk

PATH = "/data/recovery-point-offset-checkpoint"
TOPICS = st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True)


def test_dsk_04_version_count_and_one_line_each(disk):
    write_checkpoint(disk, PATH, {("flug", 1): 4712, ("flug", 0): 4711, ("a-b", 10): 0})
    assert disk.read(PATH) == b"0\n3\na-b 10 0\nflug 0 4711\nflug 1 4712\n"
    write_checkpoint(disk, PATH, {})
    assert disk.read(PATH) == b"0\n0\n"


@pytest.mark.slow
@given(st.dictionaries(st.tuples(TOPICS, st.integers(0, 2**31)), st.integers(0, 2**63)))
def test_what_was_written_is_read(offsets):
    disk = new_disk()
    write_checkpoint(disk, PATH, offsets)
    assert read_checkpoint(disk, PATH) == offsets


def test_a_missing_or_empty_file_has_no_offsets(disk):
    assert read_checkpoint(disk, PATH) == {}
    disk.write(PATH, b"")
    assert read_checkpoint(disk, PATH) == {}


@pytest.mark.parametrize(
    "content", [b"0", b"1\n0\n", b"0\n2\na 0 1\n", b"0\n1\na 0\n", b"0\n1\na 0 x\n", b"\xff\n\n"]
)
def test_a_damaged_file_is_told(disk, content):
    disk.write(PATH, content)
    with pytest.raises(DamagedCheckpointError):
        read_checkpoint(disk, PATH)


@given(st.integers(0, 60))
def test_a_file_cut_anywhere_is_told_and_not_believed(size):
    disk = new_disk()
    write_checkpoint(disk, PATH, {("flug", 1): 4712, ("flug", 0): 4711, ("a-b", 10): 12345})
    whole = disk.read(PATH)
    disk.write(PATH, whole[:size])
    if 0 < size < len(whole):
        with pytest.raises(DamagedCheckpointError):
            read_checkpoint(disk, PATH)
