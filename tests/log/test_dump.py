"""Dumping files offline: the lines of `kafka-dump-log` (MSG-02, MSG-14, MSG-15, DSK-13…15)."""

import json
import random
import struct
from pathlib import Path

import pytest

from strom.log.dump import (
    batch_fields,
    dump_lines,
    read_batches,
    read_index,
    read_offset_entries,
    read_time_entries,
    record_fields,
)
from strom.records.batch import read_header
from strom.records.record import Record, read_records, seal, write_batch
from tests import nodes
from tests.log.stored import FILES, SEGMENT, TORN_SEGMENT, write_partition

#: What Apache Kafka 4.3.1 printed for the directory that `stored` builds.
TRANSCRIPT = (Path(__file__).parent / "dump.txt").read_text().splitlines()


@pytest.fixture
def partition(tmp_path, monkeypatch):
    write_partition(tmp_path)
    # The name of a file is printed as it was given.
    monkeypatch.chdir(tmp_path)
    return tmp_path


def dump_all(**options):
    return [line for name in FILES for line in dump_lines(name, **options)]


def test_lines_are_those_of_kafka(partition):
    assert dump_all(with_records=True) == TRANSCRIPT


def test_without_records_the_batches_remain(partition):
    assert dump_all() == [line for line in TRANSCRIPT if not line.startswith("|")]


@pytest.mark.java
@pytest.mark.slow
def test_kafka_still_prints_the_same(partition):
    if reason := nodes.java_missing():
        pytest.skip(reason)
    printed = nodes.kafka_tool("kafka-dump-log", "--files", ",".join(FILES), "--print-data-log")
    assert printed.stdout.splitlines() == dump_all(with_records=True)


@pytest.mark.java
@pytest.mark.slow
def test_kafka_reads_every_codec_at_every_level(tmp_path, monkeypatch):
    """More than one block of each frame, so that their seams are read too."""
    if reason := nodes.java_missing():
        pytest.skip(reason)
    monkeypatch.chdir(tmp_path)
    levels = {0: (None,), 1: (None, 1, 9), 2: (None,), 3: (None, 1, 17), 4: (None, -5, 22)}
    written = [(codec, level) for codec, among in levels.items() for level in among]
    with (tmp_path / SEGMENT).open("wb") as file:
        for offset, (codec, level) in enumerate(written):
            noise = random.Random(offset).randbytes(70_000).hex().encode()
            record = Record(offset, 1000, b"k", b"altitude " * 20_000 + noise)
            file.write(write_batch([record], codec=codec, level=level))
    printed = nodes.kafka_tool("kafka-dump-log", "--files", SEGMENT, "--print-data-log")
    assert printed.stdout.splitlines() == list(dump_lines(SEGMENT, with_records=True))


def test_text_files_are_shown_as_they_are(partition):
    assert list(dump_lines("leader-epoch-checkpoint")) == [
        "Dumping leader-epoch-checkpoint",
        "0",
        "3",
        "3 0",
        "4 29",
        "5 32",
    ]


def test_bootstrap_snapshot_has_a_title_of_its_own(partition):
    (partition / "bootstrap.checkpoint").write_bytes(b"")
    lines = list(dump_lines("bootstrap.checkpoint"))
    assert lines == ["Dumping bootstrap.checkpoint", "KRaft bootstrap snapshot"]


def test_payload_is_shown_by_the_decoder_given(partition):
    lines = list(dump_lines(SEGMENT, with_records=True, decode=lambda record: "shown"))
    assert any(line.endswith("payload: shown") for line in lines)
    assert not any(line.endswith("payload: value") for line in lines)


def test_fields_are_values(partition):
    first = next(read_batches(SEGMENT))
    fields = batch_fields(first)
    assert fields["LogAppendTime"] == 2000
    assert fields["deleteHorizonMs"] is None
    assert fields["isvalid"] is True
    assert json.dumps(fields)
    record = next(read_records(first.data))
    assert record_fields(first.header, record) == {
        "offset": 0,
        "LogAppendTime": 2000,
        "keySize": 3,
        "valueSize": 5,
        "sequence": -1,
        "headerKeys": ["first", "second"],
    }


def test_invalid_batch_is_told_and_shown(partition):
    data = bytearray((partition / SEGMENT).read_bytes())
    data[17] ^= 1
    (partition / SEGMENT).write_bytes(data)
    lines = list(dump_lines(SEGMENT, with_records=True))
    assert lines[2].endswith("isvalid: false")
    assert len(lines) == TRANSCRIPT.index(f"Dumping {FILES[1]}")


def test_unreadable_records_do_not_end_the_dump(partition):
    good = write_batch([Record(0, 1, b"k", b"v")])
    header = read_header(good)
    (partition / SEGMENT).write_bytes(seal(header, b"\xff" * 20) + good)
    lines = list(dump_lines(SEGMENT, with_records=True))
    assert lines[3].startswith("| unreadable: INVALID_RECORD")
    assert lines[-1].endswith("payload: v")


def test_unknown_codec_does_not_end_the_dump(partition):
    good = write_batch([Record(0, 1, b"k", b"v")])
    batch = seal(read_header(good).changed(attributes=6), good[61:])
    (partition / SEGMENT).write_bytes(batch)
    lines = list(dump_lines(SEGMENT, with_records=True))
    assert "compresscodec: unknown(6)" in lines[2]
    assert lines[3].startswith("| unreadable: UNSUPPORTED_COMPRESSION_TYPE")


def test_damaged_snapshot_is_told(partition):
    (partition / "00000000000000000100.snapshot").write_bytes(b"nonsense")
    assert list(dump_lines("00000000000000000100.snapshot"))[1] == "Snapshot is damaged"


def test_file_cut_at_any_byte_can_be_dumped(partition):
    data = (partition / TORN_SEGMENT).read_bytes()
    for size in range(len(data)):
        (partition / TORN_SEGMENT).write_bytes(data[:size])
        lines = list(dump_lines(TORN_SEGMENT, with_records=True))
        whole = size >= 70
        assert any(line.startswith("baseOffset") for line in lines) is whole
        assert lines[-1].startswith("Found") is (size not in (0, 70))


def test_entries_end_where_the_allocated_zeros_begin():
    entries = struct.pack(">iiii", 4, 100, 9, 200)
    assert list(read_offset_entries(entries + bytes(4096), 10)) == [(14, 100), (19, 200)]
    assert list(read_offset_entries(bytes(4096), 10)) == []
    times = struct.pack(">qiqi", 500, 4, 600, 9)
    assert list(read_time_entries(times + bytes(4095), 10)) == [(500, 14), (600, 19)]
    assert list(read_time_entries(bytes(12), 10)) == []


def test_entry_whose_last_bytes_are_zero_is_kept():
    entries = struct.pack(">ii", 4, 0x01000000)
    assert list(read_offset_entries(entries, 0)) == [(4, 0x01000000)]
    assert list(read_time_entries(struct.pack(">qi", 256, 0), 7)) == [(256, 7)]


def test_torn_entry_is_left_out():
    assert list(read_offset_entries(struct.pack(">iii", 4, 100, 9), 0)) == [(4, 100)]


def test_allocated_zeros_are_not_read(tmp_path):
    path = tmp_path / "00000000000000000000.index"
    entries = struct.pack(">ii", 4, 100)
    path.write_bytes(entries + bytes(1024 * 1024))
    assert len(read_index(str(path))) < 100_000
    assert read_index(str(path)).startswith(entries)
