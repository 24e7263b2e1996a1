"""Which of the batches that a broker sent a reader may see.

Nobody sees control batches. Who reads committed data does not see what was aborted: the answer
names the producers whose transactions were, each with the first offset, and an abort marker ends
what began there. A batch that is cut off at the end of an answer comes again with the next.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from strom.records.batch import HEADER_SIZE, MAGIC, Header, compute_crc, read_header
from strom.records.control_key import ControlType, read_control_type
from strom.records.record import read_records
from strom.wire.errors import ErrorCode, KafkaError


class Aborted(Protocol):
    """A transaction whose records do not count, as a Fetch response names it."""

    producer_id: int
    first_offset: int


class Batch(NamedTuple):
    """A whole batch: its header, and where its bytes are."""

    header: Header
    data: memoryview


def whole_batches(records: memoryview, *, checks_crcs: bool = True) -> Iterator[Batch]:
    """Yield the batches up to the one that is cut off."""
    position = 0
    while position + HEADER_SIZE <= len(records):
        header = read_header(records, position)
        if header.magic != MAGIC:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"records of magic {header.magic}")
        end = position + header.size_bytes
        if header.size_bytes < HEADER_SIZE:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"a batch of {header.size_bytes} bytes")
        if end > len(records):
            return
        data = records[position:end]
        if checks_crcs and compute_crc(data) != header.crc:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"the batch at offset {header.base_offset} fails its checksum",
            )
        yield Batch(header, data)
        position = end


class Sight:
    """What is seen of an answer's batches, which must come in their order."""

    def __init__(self, aborted: Sequence[Aborted]) -> None:
        #: The next to begin is the last.
        self._to_come = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
        self._aborted: set[int] = set()

    def shows(self, batch: Batch) -> bool:
        """Tell whether the batch holds data that counts."""
        header = batch.header
        while self._to_come and self._to_come[-1].first_offset <= header.last_offset:
            self._aborted.add(self._to_come.pop().producer_id)
        if header.is_control:
            if header.producer_id in self._aborted and _is_abort(batch):
                self._aborted.discard(header.producer_id)
            return False
        return not (header.is_transactional and header.producer_id in self._aborted)


def _is_abort(batch: Batch) -> bool:
    marker = next(read_records(batch.data), None)
    return marker is not None and read_control_type(marker.key) is ControlType.ABORT
