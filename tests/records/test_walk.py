"""The walk over records: what it finds, compiled and in Python alike.

Whatever the bytes are, both give the same facts, agree with `read_records` on what can be read, and
touch no byte outside of the range: the compiled one is run up to a page that ends the process.
"""

import ctypes
import mmap
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strom.records import plain_walk, walk
from strom.records.batch import HEADER_SIZE, read_header
from strom.records.compression import Codec
from strom.records.record import Record, read_records, seal, write_batch, write_records
from strom.records.walk import NO_RECORD, UNREADABLE, Facts, Fault, inspect_batch
from strom.wire.errors import KafkaError
from tests.records.strategies import record_lists

try:
    from strom.records import _walk
except ImportError:
    _walk = None

compiled = pytest.mark.skipif(_walk is None, reason="no C compiler when this was installed")
WALKS = [
    pytest.param("plain_walk", id="plain"),
    pytest.param("_walk", id="compiled", marks=compiled),
]
INT64 = st.integers(-(2**63), 2**63 - 1)
COUNTS = st.integers(0, 12) | st.sampled_from([-1, 2**31 - 1])

#: Three records, each: length, attributes, two deltas, key, value, count of headers.
RECORDS = [Record(index, 1000 + index, b"k", b"vvvvv") for index in range(3)]
PAYLOAD = bytes(write_records(RECORDS, 0, 1000))
RECORD_BYTES = len(PAYLOAD) // 3


@pytest.fixture(params=WALKS)
def walked(request):
    """One of the two walks, over all of some bytes."""
    module = {"plain_walk": plain_walk, "_walk": _walk}[request.param]

    def walk_all(payload, count, base_timestamp=1000):
        return module.walk(payload, 0, len(payload), count, base_timestamp)

    return walk_all


def test_facts_of_good_records(walked):
    assert walked(PAYLOAD, 3) == Facts(Fault.NONE, 3, len(PAYLOAD), 1000, 1002, NO_RECORD, True)


def test_facts_have_names(walked):
    facts = walked(PAYLOAD, 3)
    assert isinstance(facts, Facts)
    assert (facts.record_count, facts.oldest_ms, facts.newest_ms) == (3, 1000, 1002)


def test_no_records_have_no_times(walked):
    assert walked(b"", 0) == Facts(Fault.NONE, 0, 0, -1, -1, NO_RECORD, True)


def test_first_record_without_a_key_is_told(walked):
    keys = [b"k", None, b"", None]
    records = [Record(index, 0, key, b"v") for index, key in enumerate(keys)]
    assert walked(write_records(records, 0, 0), 4).keyless == 1


@pytest.mark.parametrize("offsets", [(1, 2), (0, 0), (0, 2), (1, 0), (-1, 0)])
def test_offsets_out_of_sequence_are_told(walked, offsets):
    facts = walked(write_records([Record(each, 0, b"k", b"v") for each in offsets], 0, 0), 2)
    assert (facts.fault, facts.is_in_sequence) == (Fault.NONE, False)


def test_times_begin_again_below_zero_as_in_java(walked):
    facts = walked(write_records([Record(0, 5, None, None)], 0, 0), 1, 2**63 - 1)
    assert (facts.oldest_ms, facts.newest_ms) == (-(2**63) + 4, -1)


def test_newest_time_is_never_before_none_at_all(walked):
    records = [Record(index, time, b"k", b"v") for index, time in enumerate((-9, -3))]
    facts = walked(write_records(records, 0, 0), 2, 0)
    assert (facts.oldest_ms, facts.newest_ms) == (-9, -1)


@pytest.mark.parametrize(
    ("at", "byte", "fault"),
    [
        (0, 0, Fault.FIELD),  # record length 0
        (0, 1, Fault.LENGTH),  # record length -1
        (0, 100, Fault.LENGTH),  # longer than all there is
        (0, 26, Fault.RECORD_REST),  # one byte too long
        (0, 22, Fault.FIELD),  # one byte too short: without its count of headers
        (4, 100, Fault.FIELD),  # key longer than its record
        (6, 100, Fault.FIELD),  # value longer than its record
        (12, 1, Fault.HEADER_COUNT),  # header count -1
        (12, 18, Fault.HEADER_COUNT),  # nine headers in no bytes
        (12, 0x80, Fault.FIELD),  # a number that its record cuts off
    ],
)
def test_fault_is_told_with_its_place(walked, at, byte, fault):
    """In the second of three records."""
    broken = bytearray(PAYLOAD)
    broken[RECORD_BYTES + at] = byte
    if fault == Fault.RECORD_REST:
        broken[2 * RECORD_BYTES : 2 * RECORD_BYTES] = b"\0"
    facts = walked(broken, 3)
    assert (facts.fault, facts.record_count, facts.position) == (fault, 1, RECORD_BYTES)
    assert (facts.oldest_ms, facts.newest_ms) == (1000, 1000)


@pytest.mark.parametrize(
    ("count", "payload", "fault"),
    [
        (4, PAYLOAD, Fault.ENDS_EARLY),
        (4, PAYLOAD + b"\x80", Fault.ENDS_EARLY),
        (2, PAYLOAD, Fault.REST),
        (3, PAYLOAD + b"\0", Fault.REST),
        (0, PAYLOAD, Fault.REST),
        (-1, PAYLOAD, Fault.REST),
        (1, b"", Fault.ENDS_EARLY),
        (1, b"\xff" * 9, Fault.NUMBER),
    ],
)
def test_count_that_lies_is_a_fault(walked, count, payload, fault):
    assert walked(payload, count).fault == fault


def framed(body):
    return bytes([2 * len(body)]) + body


NUMBERS = {
    "a time of ten bytes": (b"\0" + b"\x80" * 9 + b"\0" + b"\0\1\1\0", Fault.NONE),
    "a time of eleven bytes": (b"\0" + b"\x80" * 10 + b"\0" + b"\0\1\1\0", Fault.NUMBER),
    "an offset of five bytes": (b"\0\0" + b"\x80" * 4 + b"\0" + b"\1\1\0", Fault.NONE),
    "an offset of six bytes": (b"\0\0" + b"\x80" * 5 + b"\0" + b"\1\1\0", Fault.NUMBER),
    "bits too many for an offset": (b"\0\0" + b"\x80" * 4 + b"\x70" + b"\1\1\0", Fault.NONE),
    "bits too many for a time": (b"\0" + b"\x80" * 9 + b"\x7e" + b"\0\1\1\0", Fault.NONE),
    "a key of minus two bytes": (b"\0\0\0\3\1\0", Fault.NONE),
    "a header without a key": (b"\0\0\0\1\1\2\1\0", Fault.HEADER_KEY),
    "a header without a value": (b"\0\0\0\1\1\2\2h\1", Fault.NONE),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_read_as_kafka_does(walked, name):
    body, fault = NUMBERS[name]
    facts = walked(framed(body), 1, 0)
    assert facts.fault == fault
    if fault == Fault.NONE:
        assert (facts.newest_ms, facts.keyless, facts.is_in_sequence) == (0, 0, True)


@pytest.mark.parametrize("span", [(-1, 3), (2, 1), (0, len(PAYLOAD) + 1)])
def test_range_outside_of_the_bytes_is_an_error(span):
    for module in filter(None, (plain_walk, _walk)):
        with pytest.raises(ValueError, match="no bytes"):
            module.walk(PAYLOAD, *span, 3, 0)


def test_any_buffer_will_do_and_only_its_range_is_read():
    padded = b"\xff" * 7 + PAYLOAD + b"\xff" * 9
    for data in (padded, bytearray(padded), memoryview(bytearray(padded))):
        for module in filter(None, (plain_walk, _walk)):
            facts = module.walk(data, 7, 7 + len(PAYLOAD), 3, 1000)
            assert facts == Facts(Fault.NONE, 3, len(PAYLOAD), 1000, 1002, NO_RECORD, True)


@st.composite
def payloads(draw):
    """Records as bytes, a few of them changed, cut off or put in."""
    records = draw(record_lists(contiguous=draw(st.booleans())))
    payload = write_records(records, records[0].offset, records[0].timestamp_ms)
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(payload)))
        size = draw(st.integers(0, 2))
        payload[at : at + size] = draw(st.binary(max_size=3))
    return bytes(payload)


def read(payload, count, base_timestamp):
    """What `read_records` makes of the bytes: facts as those of a walk, or None."""
    template = read_header(write_batch(RECORDS))
    header = template.changed(record_count=count, base_timestamp=base_timestamp)
    try:
        records = list(read_records(seal(header, payload)))
    except KafkaError:
        return None
    times = [record.timestamp_ms for record in records]
    keyless = [index for index, record in enumerate(records) if record.key is None]
    offsets = [record.offset for record in records]
    return Facts(
        Fault.NONE,
        len(records),
        len(payload),
        min(times, default=-1),
        max([-1, *times]),
        keyless[0] if keyless else NO_RECORD,
        offsets == list(range(len(records))),
    )


@pytest.mark.slow
@given(payload=payloads() | st.binary(max_size=60), count=COUNTS, base_timestamp=INT64)
def test_walk_and_reader_agree(payload, count, base_timestamp):
    facts = plain_walk.walk(payload, 0, len(payload), count, base_timestamp)
    expected = read(payload, count, base_timestamp)
    # A negative count is the header's fault, and the reader's to refuse.
    if expected is None:
        assert facts.fault or count < 0
    else:
        assert facts == expected


@pytest.fixture(scope="module")
def cliff():
    """A page of memory with nothing behind it: one byte too far and the process is gone."""
    size = mmap.PAGESIZE
    memory = mmap.mmap(-1, 2 * size)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    no_access = 0
    assert libc.mprotect(ctypes.c_void_p(base + size), ctypes.c_size_t(size), no_access) == 0
    yield memoryview(memory)[:size]
    assert libc.mprotect(ctypes.c_void_p(base + size), ctypes.c_size_t(size), 3) == 0


@compiled
@pytest.mark.slow
@given(payload=payloads() | st.binary(max_size=60), count=COUNTS, base_timestamp=INT64)
def test_compiled_walk_finds_the_same_and_never_reads_too_far(
    cliff, payload, count, base_timestamp
):
    payload = payload[: len(cliff)]
    edge = cliff[len(cliff) - len(payload) :]
    edge[:] = payload
    expected = plain_walk.walk(payload, 0, len(payload), count, base_timestamp)
    assert _walk.walk(edge, 0, len(edge), count, base_timestamp) == expected


@compiled
def test_every_cut_and_every_byte_of_a_record(cliff):
    """Not by chance: each prefix, and each value of each byte of the first record."""
    for size in range(len(PAYLOAD) + 1):
        edge = cliff[len(cliff) - size :]
        edge[:] = PAYLOAD[:size]
        assert _walk.walk(edge, 0, size, 3, 0) == plain_walk.walk(PAYLOAD[:size], 0, size, 3, 0)
    edge = cliff[len(cliff) - len(PAYLOAD) :]
    for at in range(RECORD_BYTES):
        for byte in range(256):
            edge[:] = PAYLOAD
            edge[at] = byte
            expected = plain_walk.walk(bytes(edge), 0, len(edge), 3, 0)
            assert _walk.walk(edge, 0, len(edge), 3, 0) == expected


@compiled
def test_other_threads_run_during_a_long_walk():
    """Nobody else is let in at a switch, only where the walk steps back; once is proof."""
    large = PAYLOAD[:RECORD_BYTES] * 1_000_000
    begun, seen = threading.Event(), []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        for _ in range(100):
            begun.clear()
            ended = []

            def long_walk(begun=begun, ended=ended):
                begun.set()
                ended.append(_walk.walk(large, 0, len(large), 1_000_000, 0).fault)

            thread = threading.Thread(target=long_walk)
            thread.start()
            begun.wait()
            seen.append(not ended)
            thread.join()
            assert ended == [Fault.NONE]
            if any(seen):
                break
    finally:
        sys.setswitchinterval(interval)
    assert any(seen)


@compiled
def test_compiled_walk_is_the_one_in_use():
    assert walk.IS_COMPILED
    assert walk.walk is _walk.walk


@pytest.mark.parametrize("codec", Codec)
def test_batch_is_inspected_in_every_codec(codec):
    batch = write_batch(RECORDS, codec=codec)
    expected = Facts(Fault.NONE, 3, len(PAYLOAD), 1000, 1002, NO_RECORD, True)
    for buffer in (batch, bytes(batch), memoryview(batch + b"behind")):
        assert inspect_batch(read_header(batch), buffer) == expected


def test_batch_that_cannot_be_decompressed_is_a_fault():
    batch = write_batch(RECORDS)
    for codec in (*list(Codec)[1:], 5, 7):
        header = read_header(batch).changed(attributes=codec)
        assert inspect_batch(header, batch) is UNREADABLE


def test_batch_is_not_decompressed_beyond_the_limit():
    batch = write_batch([Record(0, 0, b"k", bytes(100_000))], codec=Codec.ZSTD)
    header = read_header(batch)
    assert inspect_batch(header, batch).fault == Fault.NONE
    assert inspect_batch(header, batch, size_bytes_max=100_000) is UNREADABLE


def test_header_is_not_among_the_records():
    batch = write_batch(RECORDS)
    facts = inspect_batch(read_header(batch), batch)
    assert facts.position == len(batch) - HEADER_SIZE
