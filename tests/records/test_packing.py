"""Rows become the records that they are, at the partitions where every client looks for them."""

import struct
from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strom.records import packing, plain_packing
from strom.records.batch import HEADER_SIZE, MAGIC, Header, write_header
from strom.records.packing import HeaderLists, NoSuchPartitionError, Numbers, Rows, Texts
from strom.records.record import read_records
from tests.effort import examples
from tests.records.strategies import DATA, HEADERS

ROWS = st.lists(st.tuples(DATA, DATA, HEADERS), min_size=1, max_size=30)
#: As much as the first rows of a larger column are that a part of it leaves out.
SKIPPED = st.integers(0, 20)

FORMS = [pytest.param(plain_packing, id="plain")]
if packing.IS_COMPILED:
    from strom.records import _packing

    FORMS.append(pytest.param(_packing, id="compiled"))

each_form = pytest.mark.parametrize("form", FORMS)


def bits(truths):
    found = bytearray((len(truths) + 7) // 8)
    for at, truth in enumerate(truths):
        found[at >> 3] |= truth << (at & 7)
    return bytes(found)


def texts(values, skipped=0):
    """A column whose first texts belong to somebody else."""
    everything = [b"other"] * skipped + list(values)
    ends = array("i", [0])
    for each in everything:
        ends.append(ends[-1] + len(each or b""))
    valid = bits([each is not None for each in everything]) if None in everything else None
    return Texts(ends.tobytes(), b"".join(each or b"" for each in everything), valid, skipped)


def numbers(values, skipped=0):
    everything = [77] * skipped + list(values)
    valid = bits([each is not None for each in everything]) if None in everything else None
    return Numbers(array("i", [each or 0 for each in everything]).tobytes(), valid, skipped)


def header_lists(rows, skipped):
    ends = array("i", [0] * (skipped + 1))
    for each in rows:
        ends.append(ends[-1] + len(each))
    names = texts([name.encode() for each in rows for name, _ in each], skipped)
    contents = texts([content for each in rows for _, content in each], skipped)
    return HeaderLists(ends.tobytes(), None, skipped, names, contents)


def rows_of(rows, skipped=0):
    keys, values, headers = zip(*rows, strict=True)
    columns = texts(keys, skipped), texts(values, skipped), header_lists(headers, skipped)
    return Rows(len(rows), *columns)


def one_partition(form, rows):
    return form.Spreader(1, 0, 1000, False).spread(rows)


def read_back(batch, count):
    """The records of a batch, with a header put in the room for it."""
    header = Header(0, len(batch) - 12, -1, MAGIC, 0, 0, count - 1, 5, 5, -1, -1, -1, count)
    write_header(batch, header)
    return [(each.offset, each.key, each.value, each.headers) for each in read_records(batch)]


@each_form
@given(rows=ROWS, skipped=SKIPPED)
@settings(max_examples=examples(60), deadline=None)
def test_rows_are_read_back_as_they_were(form, rows, skipped):
    columns = rows_of(rows, skipped)
    packer = form.Packer()
    assert packer.add(columns, one_partition(form, columns), 0, len(rows), 1 << 20) == len(rows)
    assert packer.count == len(rows)
    size = packer.size_bytes
    batch = packer.take()
    assert len(batch) == size
    assert read_back(batch, len(rows)) == [(at, *row) for at, row in enumerate(rows)]
    assert (packer.count, packer.size_bytes) == (0, HEADER_SIZE)


@each_form
@given(rows=ROWS, limit=st.integers(HEADER_SIZE, 600))
@settings(max_examples=examples(60), deadline=None)
def test_a_batch_grows_to_its_limit_or_by_one_record(form, rows, limit):
    columns = rows_of(rows)
    spread = one_partition(form, columns)
    first, found = 0, []
    while first < len(rows):
        packer = form.Packer()
        after = packer.add(columns, spread, first, len(rows), limit)
        assert after - first == packer.count
        assert packer.count == 1 or packer.size_bytes <= limit
        found += read_back(packer.take(), after - first)
        first = after
    assert [each[1:] for each in found] == list(rows)


@each_form
def test_a_batch_is_filled_from_several_sets_of_rows(form):
    packer = form.Packer()
    for key in (b"a", None):
        columns = rows_of([(key, b"value", ())])
        packer.add(columns, one_partition(form, columns), 0, 1, 1000)
    assert read_back(packer.take(), 2) == [(0, b"a", b"value", ()), (1, None, b"value", ())]


@each_form
def test_rows_without_a_column_of_keys_have_null_keys(form):
    columns = Rows(2, None, texts([b"x", None]))
    packer = form.Packer()
    packer.add(columns, one_partition(form, columns), 0, 2, 1000)
    assert read_back(packer.take(), 2) == [(0, None, b"x", ()), (1, None, None, ())]


@each_form
@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        # From Kafka's own tests.
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_a_key_goes_where_every_client_looks_for_it(form, key, hashed):
    """PRO-05, PRO-06: the same key, the same partition, whoever wrote it."""
    count = 1000
    spread = form.Spreader(count, 0, 1000, False).spread(rows_of([(key, b"", ())]))
    expected = (hashed & 0x7FFFFFFF) % count
    assert spread.bounds[expected : expected + 2] == (0, 1)
    assert plain_packing.murmur2(key) == hashed & 0xFFFFFFFF


@each_form
@given(rows=ROWS, count=st.integers(1, 9), turn=st.integers(0, 20), skipped=SKIPPED)
@settings(max_examples=examples(60), deadline=None)
def test_both_forms_spread_alike_and_keep_the_order(form, rows, count, turn, skipped):
    columns = rows_of(rows, skipped)
    named = numbers([at % count if at % 3 else None for at in range(len(rows))], skipped)
    made = form.Spreader(count, turn, 50, False), plain_packing.Spreader(count, turn, 50, False)
    for partitions in (None, named):
        spread, plain = (each.spread(columns, partitions) for each in made)
        assert spread.bounds == plain.bounds
        assert bytes(spread.rows) == bytes(plain.rows)
        order = struct.unpack(f"={len(rows)}i", spread.rows)
        assert sorted(order) == list(range(len(rows)))
        for partition in range(count):
            part = order[spread.bounds[partition] : spread.bounds[partition + 1]]
            assert list(part) == sorted(part)


@each_form
def test_rows_without_a_key_stay_for_some_bytes_and_move_on(form):
    """PRO-07."""
    columns = rows_of([(None, b"x" * 100, ())] * 10)
    spread = form.Spreader(3, 2, 250, False).spread(columns)
    # Two records of 100 bytes, and what goes with them, are 250.
    assert spread.bounds == (0, 4, 6, 10)


@each_form
def test_keys_are_ignored_when_told_so(form):
    columns = rows_of([(bytes([at]), b"", ()) for at in range(20)])
    spread = form.Spreader(4, 1, 10_000, True).spread(columns)
    assert spread.bounds == (0, 0, 20, 20, 20)


@each_form
@pytest.mark.parametrize("partition", [-1, 3])
def test_a_partition_that_there_is_not_is_told(form, partition):
    """PRO-08."""
    columns = rows_of([(None, b"", ())] * 2)
    with pytest.raises(NoSuchPartitionError) as refused:
        form.Spreader(3, 0, 10, False).spread(columns, numbers([0, partition]))
    assert refused.value.partition == partition
