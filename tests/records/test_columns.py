"""Records as columns: what `read_records` reads, compiled and in Python alike."""

import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strom.records import plain_columns
from strom.records.batch import HEADER_SIZE, TIMESTAMP_TYPE_FLAG, read_header
from strom.records.plain_walk import BrokenRecordsError
from strom.records.record import Record, read_records, write_batch
from tests.records.strategies import record_lists

try:
    from strom.records import _columns
except ImportError:
    _columns = None

compiled = pytest.mark.skipif(_columns is None, reason="no C compiler when this was installed")
FORMS = [
    pytest.param("plain", id="plain"),
    pytest.param("compiled", id="compiled", marks=compiled),
]
FLAGS = st.sampled_from([0, TIMESTAMP_TYPE_FLAG])
INT64_MAX = 2**63 - 1


@pytest.fixture(params=FORMS)
def make(request):
    """One of the two forms."""
    return {"plain": plain_columns, "compiled": _columns}[request.param].Columns


def add(columns, batch, first=0, end=INT64_MAX):
    columns.add(bytes(batch), HEADER_SIZE, len(batch), read_header(batch), first, end)


def numbers(form, buffer):
    return [each for (each,) in struct.iter_unpack(form, bytes(memoryview(buffer)))]


def texts(column):
    ends = numbers("=i", column.ends)
    data = bytes(memoryview(column.data))
    valid = None if column.valid is None else bytes(memoryview(column.valid))
    return [
        data[start:end] if valid is None or valid[n >> 3] >> (n & 7) & 1 else None
        for n, (start, end) in enumerate(pairwise(ends))
    ]


def rows(taken):
    """Put the columns together again, as records."""
    headers = [()] * taken.rows
    if taken.headers is not None:
        ends = numbers("=i", taken.headers.ends)
        pairs = list(
            zip(
                (name.decode("utf-8", "replace") for name in texts(taken.headers.names)),
                texts(taken.headers.contents),
                strict=True,
            )
        )
        headers = [tuple(pairs[a:b]) for a, b in pairwise(ends)]
    return [
        Record(offset, time // 1000, key, value, header)
        for offset, time, key, value, header in zip(
            numbers("=q", taken.offsets),
            numbers("=q", taken.timestamps),
            texts(taken.keys),
            texts(taken.values),
            headers,
            strict=True,
        )
    ]


def in_range(records):
    """Leave the times as 64 bits hold them in microseconds."""
    least, most = -(2**63) // 1000, INT64_MAX // 1000
    return [
        each._replace(timestamp_ms=min(max(each.timestamp_ms, least), most)) for each in records
    ]


@given(st.lists(record_lists(), min_size=1, max_size=4), FLAGS, st.booleans())
@pytest.mark.parametrize("form", FORMS)
def test_msg_12_columns_hold_what_records_hold(form, lists, flags, with_headers):
    make = {"plain": plain_columns, "compiled": _columns}[form].Columns
    columns = make(with_headers)
    expected = []
    for records in lists:
        batch = write_batch(records, flags=flags)
        add(columns, batch)
        expected += read_records(batch)
    assert columns.count == len(expected)
    assert columns.size_bytes > 0
    taken = columns.take()
    if not with_headers:
        expected = [each._replace(headers=()) for each in expected]
    assert rows(taken) == in_range(expected)
    assert set(numbers("=i", taken.kinds)) == {1 if flags else 0}
    assert columns.count == 0
    assert rows(columns.take()) == []


@given(record_lists(), st.integers(0, 3000), st.integers(0, 3000))
@pytest.mark.parametrize("form", FORMS)
def test_only_the_offsets_that_were_asked_for_are_there(form, records, after, size):
    make = {"plain": plain_columns, "compiled": _columns}[form].Columns
    columns = make(True)
    first = records[0].offset + after
    add(columns, write_batch(records), first, first + size)
    wanted = [each for each in records if first <= each.offset < first + size]
    assert rows(columns.take()) == in_range(wanted)


@compiled
@given(record_lists(), st.data())
def test_both_forms_take_and_refuse_the_same_bytes(records, data):
    batch = bytearray(write_batch(records))
    at = data.draw(st.integers(HEADER_SIZE, len(batch) - 1))
    batch[at] = data.draw(st.integers(0, 255))
    found = []
    for module in (plain_columns, _columns):
        columns = module.Columns(True)
        try:
            add(columns, batch)
        except BrokenRecordsError as error:
            found.append(str(error))
        else:
            found.append(rows(columns.take()))
    assert found[0] == found[1]


def test_a_count_that_lies_costs_nothing(make):
    batch = write_batch([Record(0, 0, b"k", b"v")])
    batch[57:61] = (2**31 - 1).to_bytes(4, "big")
    with pytest.raises(BrokenRecordsError, match="Record 1: ends early"):
        add(make(True), batch)


def test_a_range_that_is_not_there_is_refused(make):
    batch = bytes(write_batch([Record(0, 0, b"k", b"v")]))
    with pytest.raises(ValueError, match="no bytes"):
        make(False).add(batch, 0, len(batch) + 1, read_header(batch), 0, 1)


def test_what_was_taken_stays_when_more_is_added(make):
    columns = make(False)
    add(columns, write_batch([Record(0, 0, b"first", None)]))
    taken = columns.take()
    add(columns, write_batch([Record(1, 0, b"other", b"x" * 5000)]))
    assert rows(taken) == [Record(0, 0, b"first", None)]


@compiled
def test_a_header_that_is_no_text_is_marked():
    batch = write_batch([Record(0, 0, b"k", b"v", (("é", b"x"),))])
    columns = _columns.Columns(True)
    add(columns, batch)
    assert columns.take().headers.names.is_wide
