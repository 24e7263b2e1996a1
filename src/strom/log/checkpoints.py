"""The checkpoint files of a log directory, in Kafka's text form.

    0                       version
    2                       count of entries
    flugdaten 0 4711        topic, partition, offset
    flugdaten 1 4712

    recovery-point-offset-checkpoint   up to where the log is surely on disk
    log-start-offset-checkpoint        the first offset, where DeleteRecords has raised it
    replication-offset-checkpoint      the high watermark
    cleaner-offset-checkpoint          up to where the cleaner has compacted

They are replaced as a whole and synced, so a crash leaves the old or the new. One that cannot
be read counts as empty: the offsets are then found from the logs, which takes longer.
"""

from collections.abc import Mapping

from strom.log.disk import Disk

RECOVERY_POINT = "recovery-point-offset-checkpoint"
LOG_START = "log-start-offset-checkpoint"
HIGH_WATERMARK = "replication-offset-checkpoint"
CLEANER = "cleaner-offset-checkpoint"
CHECKPOINTS = (RECOVERY_POINT, LOG_START, HIGH_WATERMARK, CLEANER)

VERSION = "0"

TopicPartition = tuple[str, int]


class DamagedCheckpointError(Exception):
    """A checkpoint file that cannot be read."""


def write_checkpoint(
    disk: Disk, path: str, offsets: Mapping[TopicPartition, int], *, sync: bool = True
) -> None:
    """Replace the checkpoint file."""
    lines = [f"{topic} {index} {offset}" for (topic, index), offset in sorted(offsets.items())]
    disk.write_atomically(path, write_lines(lines), sync=sync)


def read_checkpoint(disk: Disk, path: str) -> dict[TopicPartition, int]:
    """Return the offsets; empty if there is no file, DamagedCheckpointError if it is no such."""
    try:
        data = disk.read(path)
    except FileNotFoundError:
        return {}
    offsets: dict[TopicPartition, int] = {}
    for line in read_lines(data):
        try:
            topic, index, offset = line.split(" ")
            offsets[topic, int(index)] = int(offset)
        except ValueError:
            raise DamagedCheckpointError(f"{path}: {line!r}") from None
    return offsets


def write_lines(lines: list[str]) -> bytes:
    """Return the lines in a checkpoint's form, under version and count."""
    return "\n".join((VERSION, str(len(lines)), *lines, "")).encode()


def read_lines(data: bytes) -> list[str]:
    """Return the lines under version and count; nothing if the file is empty."""
    if not data:
        # Kafka creates the file before it first has something to write.
        return []
    if not data.endswith(b"\n"):
        raise DamagedCheckpointError("The last line is torn")
    try:
        version, count, *lines = data.decode().splitlines()
        expected = int(count)
    except ValueError:
        raise DamagedCheckpointError("No version and count") from None
    if version != VERSION or expected != len(lines):
        raise DamagedCheckpointError(f"Version {version}, {expected} entries, {len(lines)} lines")
    return lines
