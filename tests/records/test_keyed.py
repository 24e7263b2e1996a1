"""Batches that coordinators write are those that anybody would write of the same records."""

from hypothesis import given
from hypothesis import strategies as some

from strom.records.batch import TRANSACTIONAL_FLAG
from strom.records.compression import Codec
from strom.records.keyed import write_keyed
from strom.records.record import Producer, Record, read_records, write_batch

PAIRS = some.tuples(some.binary(max_size=80), some.none() | some.binary(max_size=3000))
PRODUCERS = some.builds(Producer, some.integers(-1, 2**40), some.integers(-1, 100), some.just(0))


@given(
    pairs=some.lists(PAIRS, min_size=1, max_size=4),
    now_ms=some.integers(0, 2**45),
    producer=PRODUCERS,
    flags=some.sampled_from([0, TRANSACTIONAL_FLAG]),
    codec=some.sampled_from([Codec.NONE, Codec.GZIP, Codec.ZSTD]),
)
def test_a_batch_is_what_anybody_would_write(pairs, now_ms, producer, flags, codec):
    records = [Record(index, now_ms, key, value) for index, (key, value) in enumerate(pairs)]
    batch = write_keyed(pairs, now_ms, producer=producer, flags=flags, codec=codec)
    assert batch == write_batch(records, producer=producer, flags=flags, codec=codec)
    assert list(read_records(batch)) == records


def test_many_records_and_large_ones_are_written_as_well():
    pairs = [(b"%d" % each, b"v") for each in range(3000)] + [(b"k" * 5000, b"v" * 100_000)]
    records = [Record(index, 7, key, value) for index, (key, value) in enumerate(pairs)]
    assert write_keyed(pairs, 7, producer=Producer()) == write_batch(records)
