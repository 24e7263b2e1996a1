"""What the checkpoint files of a log directory say of each partition.

They say how a log is to be opened, and the cleaner's from where on it is dirty.
"""

from collections.abc import Callable, Iterable

from strom.log.checkpoints import (
    CLEANER,
    HIGH_WATERMARK,
    LOG_START,
    RECOVERY_POINT,
    TopicPartition,
)
from strom.replication.partition import Partition


def gather(
    partitions: Iterable[Partition], offset_of: Callable[[Partition], int | None]
) -> dict[TopicPartition, int]:
    """Return the offset of each partition that has one to be noted."""
    return {
        (each.topic, each.index): offset
        for each in partitions
        if (offset := offset_of(each)) is not None
    }


def high_watermark_of(partition: Partition) -> int | None:
    """Return up to where the log is committed."""
    return partition.high_watermark


def recovery_point_of(partition: Partition) -> int | None:
    """Return up to where the log is surely on disk."""
    return partition.log.recovery_point


def start_offset_of(partition: Partition) -> int | None:
    """Return the start offset if the first segment's name does not tell it."""
    first = partition.log.segments[0].base_offset
    return partition.log.start_offset if partition.log.start_offset > first else None


def clean_offset_of(partition: Partition) -> int | None:
    """Return up to where the cleaner has compacted the log, if it has."""
    return partition.log.clean_offset or None


NOTED: dict[str, Callable[[Partition], int | None]] = {
    HIGH_WATERMARK: high_watermark_of,
    RECOVERY_POINT: recovery_point_of,
    LOG_START: start_offset_of,
    CLEANER: clean_offset_of,
}
