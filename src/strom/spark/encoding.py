"""Rows as Spark hands them over, in Arrow's batches, on their way into record batches.

Which columns they have is in `strom.spark.fitting`.

A batch is filled from one Arrow batch after the other until it is full, or the rows are over.
"""

from collections.abc import Callable, Set
from itertools import pairwise
from typing import Protocol

import pyarrow as pa

from strom.records.packing import (
    HeaderLists,
    NoSuchPartitionError,
    Numbers,
    Packer,
    Rows,
    Spread,
    Spreader,
    Texts,
)
from strom.spark.fitting import UnfitRowError
from strom.spark.places import Place
from strom.spark.write_options import Delivery


class Target(Protocol):
    """What takes batches: a producer, or a transaction."""

    def count_partitions(self, topic: str) -> int:
        """Return how many partitions the topic has."""

    def expect(self, places: Set[Place]) -> None:
        """Take note that batches for these partitions will come."""

    def send(self, place: Place, records: memoryview, count: int, *, now_ms: int) -> None:
        """Send records, given with room for a header in front."""


class RowEncoder:
    """Collects a task's rows into batches, and has each sent when it is full."""

    def __init__(
        self,
        topic: str | None,
        delivery: Delivery,
        target: Target,
        turn: int,
        now_ms: Callable[[], int],
    ) -> None:
        self._topic = topic
        self._delivery = delivery
        self._target = target
        self._now_ms = now_ms
        #: Where rows without a key begin, so that the tasks do not all begin at one partition.
        self._turn = turn
        self._spreaders: dict[str, tuple[int, Spreader]] = {}
        self._packers: dict[Place, Packer] = {}
        self._buffered_bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Take the rows; those that fill a batch are sent."""
        columns = {name.lower(): batch.column(at) for at, name in enumerate(batch.schema.names)}
        if self._topic is not None:
            self._add(self._topic, columns, batch.num_rows)
            return
        # Loaded here: most rows go to one topic, and every worker would wait for it.
        import pyarrow.compute as pc

        topics = columns["topic"]
        if topics.null_count:
            raise UnfitRowError(
                "A row's topic is null: give the option 'topic', or each row a topic."
            )
        for name in pc.unique(topics).to_pylist():
            of_topic = pc.equal(topics, name)
            chosen = {each: column.filter(of_topic) for each, column in columns.items()}
            self._add(name, chosen, len(chosen["value"]))

    def flush(self) -> None:
        """Have everything sent that is there."""
        for place in self._packers:
            self._finish(place)

    def _add(self, topic: str, columns: dict[str, pa.Array], count: int) -> None:
        if not count:
            return
        rows = Rows(
            count,
            _texts(columns["key"]) if "key" in columns else None,
            _texts(columns["value"]),
            _headers(columns["headers"]) if "headers" in columns else None,
        )
        named = _numbers(columns["partition"]) if "partition" in columns else None
        partition_count, spreader = self._spreader(topic)
        try:
            spread = spreader.spread(rows, named)
        except NoSuchPartitionError as error:
            raise UnfitRowError(
                f"A row is for partition {error.partition} of topic '{topic}', "
                f"which has {partition_count}."
            ) from None
        bounds = enumerate(pairwise(spread.bounds))
        parts = {(topic, at): part for at, part in bounds if part[0] < part[1]}
        fresh = parts.keys() - self._packers.keys()
        if fresh:
            self._target.expect(fresh)
            self._packers |= {place: Packer() for place in fresh}
        for place, (first, stop) in parts.items():
            while first < stop:
                first = self._pack(place, rows, spread, first, stop)

    def _pack(self, place: Place, rows: Rows, spread: Spread, first: int, stop: int) -> int:
        packer = self._packers[place]
        before = packer.size_bytes
        after = packer.add(rows, spread, first, stop, self._delivery.batch_bytes)
        self._buffered_bytes += packer.size_bytes - before
        if after < stop:
            self._finish(place)
        elif self._buffered_bytes >= self._delivery.buffer_bytes:
            self.flush()
        return after

    def _finish(self, place: Place) -> None:
        packer = self._packers[place]
        count, size = packer.count, packer.size_bytes
        if count:
            self._target.send(place, packer.take(), count, now_ms=self._now_ms())
            self._buffered_bytes -= size - packer.size_bytes

    def _spreader(self, topic: str) -> tuple[int, Spreader]:
        found = self._spreaders.get(topic)
        if found is None:
            count, delivery = self._target.count_partitions(topic), self._delivery
            spreader = Spreader(count, self._turn, delivery.batch_bytes, delivery.ignores_keys)
            found = self._spreaders[topic] = count, spreader
        return found


def _texts(column: pa.Array) -> Texts:
    if not (pa.types.is_binary(column.type) or pa.types.is_string(column.type)):
        # Spark has a setting by which texts are wider than records can hold.
        column = column.cast(pa.binary())
    valid, ends, data = column.buffers()
    return Texts(ends or bytes(4), data or b"", valid, column.offset)


def _numbers(column: pa.Array) -> Numbers:
    valid, values = column.buffers()
    return Numbers(values or b"", valid, column.offset)


def _headers(column: pa.ListArray) -> HeaderLists:
    valid, ends = column.buffers()[:2]
    each = column.values
    if each.null_count or each.field(0).null_count:
        raise UnfitRowError("A header, or its key, is null; only its value may be.")
    return HeaderLists(
        ends or bytes(4), valid, column.offset, _texts(each.field(0)), _texts(each.field(1))
    )
