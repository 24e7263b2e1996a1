import json

import pytest

from strom.records.record import Record, write_batch

FIRST = "00000000000000000000.log"


@pytest.fixture
def partition(tmp_path):
    """The directory of a partition with two batches in its log."""
    directory = tmp_path / "flugdaten-0"
    directory.mkdir()
    records = [Record(offset, 1700000000000, b"rakete1", b"Liftoff", ()) for offset in range(3)]
    with (directory / FIRST).open("wb") as file:
        file.write(write_batch(records[:2], leader_epoch=0))
        file.write(write_batch(records[2:], leader_epoch=0))
    return directory


def test_a_dump_shows_batches_as_kafkas_tool_does(strom, partition):
    lines = strom("log", "dump", str(partition / FIRST)).stdout.splitlines()
    assert lines[:2] == [f"Dumping {partition / FIRST}", "Log starting offset: 0"]
    assert [line.split(" count: ")[0] for line in lines[2:]] == [
        "baseOffset: 0 lastOffset: 1",
        "baseOffset: 2 lastOffset: 2",
    ]


def test_a_dump_of_a_directory_shows_its_files_with_records(strom, partition):
    result = strom("log", "dump", str(partition.parent), "--records")
    assert result.exit_code == 0
    assert result.stdout.count("key: rakete1 payload: Liftoff") == 3


def test_a_dump_may_be_json(strom, partition):
    result = strom("log", "dump", str(partition), "-r", "--json")
    batches = [json.loads(line) for line in result.stdout.splitlines()]
    assert [each["count"] for each in batches] == [2, 1]
    assert all(each["isvalid"] for each in batches)
    assert batches[1]["records"][0]["value"] == "Liftoff"


def test_a_flipped_bit_is_found(strom, partition):
    data = bytearray((partition / FIRST).read_bytes())
    data[-1] ^= 1
    (partition / FIRST).write_bytes(data)
    result = strom("log", "verify", str(partition))
    assert result.exit_code == 1
    assert FIRST in result.stdout
    problems = json.loads(strom("log", "verify", str(partition), "--json").stdout)
    assert problems[0]["path"].endswith(FIRST)


@pytest.mark.parametrize("verb", ["dump", "verify"])
def test_what_is_not_there_is_said(strom, tmp_path, verb):
    result = strom("log", verb, str(tmp_path / "nothing"))
    assert result.exit_code == 1
    assert "there is no" in result.stderr


def test_a_directory_without_logs_is_said(strom, tmp_path):
    result = strom("log", "dump", str(tmp_path))
    assert result.exit_code == 1
    assert "no files of a log" in result.stderr


def test_what_is_no_file_of_a_log_is_not_shown(strom, partition):
    stranger = partition / "notes.txt"
    stranger.write_text("not ours")
    (partition / "leader-epoch-checkpoint").write_text("0\n0\n")
    assert "is no file of a log" in strom("log", "dump", str(stranger)).stderr
    assert strom("log", "dump", str(partition / "leader-epoch-checkpoint")).exit_code == 0
    as_json = strom("log", "dump", str(partition / "leader-epoch-checkpoint"), "--json")
    assert as_json.exit_code == 1
    assert "holds no batches" in as_json.stderr
    assert "is a file" in strom("log", "verify", str(partition / FIRST)).stderr


def test_records_that_cannot_be_read_do_not_end_a_dump(strom, partition):
    data = bytearray((partition / FIRST).read_bytes())
    # The first record's length, which is behind the header.
    data[61] = 0x7F
    (partition / FIRST).write_bytes(data)
    result = strom("log", "dump", str(partition), "-r", "--json")
    first, second = map(json.loads, result.stdout.splitlines())
    assert not first["isvalid"]
    assert first["unreadable"]
    assert second["records"][0]["value"] == "Liftoff"
