"""DescribeLogDirs (key 35): the log directories, and how large the partitions in them are.

Behaviour:
- Every directory is told, also one without any of the partitions asked for; no list of topics
  means all of them. Partitions that are not here are left out.
- A directory that failed is KAFKA_STORAGE_ERROR and has no partitions.
- A partition that is being moved is told twice: in its directory, and as a future one, with how
  far it is behind, in the directory that it moves to.
- How large a volume is and how much of it is free is asked in a thread; -1 if that cannot be told.

Versions:
- v3 has a code for the whole answer; v4 the volume's sizes; v5 tells cordoned directories.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from strom.broker.answers import NO_THROTTLE
from strom.broker.context import Context
from strom.log.directory import LogDirectory
from strom.wire.errors import ErrorCode
from strom.wire.lazy import lazy

if TYPE_CHECKING:
    from kio.schema.describe_log_dirs.v5 import request as asked
    from kio.schema.describe_log_dirs.v5 import response as answer
else:
    answer = lazy("kio.schema.describe_log_dirs.v5.response")

KEY = 35
VERSIONS = range(1, 6)

UNKNOWN_BYTES = -1
ALL_CORDONED = "*"


class Volume(NamedTuple):
    """The file system that a directory is on."""

    total_bytes: int
    usable_bytes: int


async def handle(
    request: asked.DescribeLogDirsRequest, context: Context
) -> answer.DescribeLogDirsResponse:
    """Describe every directory."""
    paths = [each.path for each in context.replicas.directories if each.failed is None]
    volumes = await context.parts.host.offload(lambda: {path: volume_of(path) for path in paths})
    wanted = wanted_partitions(request)
    return answer.DescribeLogDirsResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.NONE,
        results=tuple(
            describe(directory, volumes.get(directory.path), wanted, context)
            for directory in context.replicas.directories
        ),
    )


def volume_of(path: str) -> Volume:
    """Ask the system about the volume that the path is on."""
    try:
        usage = shutil.disk_usage(path)
    except OSError:
        return Volume(UNKNOWN_BYTES, UNKNOWN_BYTES)
    return Volume(usage.total, usage.free)


def wanted_partitions(request: asked.DescribeLogDirsRequest) -> set[tuple[str, int]] | None:
    """Return the partitions asked for, or None for all."""
    if request.topics is None:
        return None
    return {(topic.topic, index) for topic in request.topics for index in topic.partitions}


def describe(
    directory: LogDirectory,
    volume: Volume | None,
    wanted: set[tuple[str, int]] | None,
    context: Context,
) -> answer.DescribeLogDirsResult:
    """Describe one directory."""
    # It may have failed while the volumes were asked for.
    if directory.failed is not None or volume is None:
        return answer.DescribeLogDirsResult(
            error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=directory.path, topics=()
        )
    by_topic: dict[str, list[answer.DescribeLogDirsPartition]] = {}
    for topic, partition in held(directory, context):
        if wanted is None or (topic, partition.partition_index) in wanted:
            by_topic.setdefault(topic, []).append(partition)
    cordoned = context.settings.items("cordoned.log.dirs")
    return answer.DescribeLogDirsResult(
        error_code=ErrorCode.NONE,
        log_dir=directory.path,
        topics=tuple(
            answer.DescribeLogDirsTopic(name=name, partitions=tuple(by_topic[name]))
            for name in sorted(by_topic)
        ),
        total_bytes=volume.total_bytes,
        usable_bytes=volume.usable_bytes,
        is_cordoned=directory.path in cordoned or ALL_CORDONED in cordoned,
    )


def held(
    directory: LogDirectory, context: Context
) -> Iterator[tuple[str, answer.DescribeLogDirsPartition]]:
    """Yield the partitions in a directory, those that move into it last."""
    for partition in context.replicas.partitions_in(directory):
        log = partition.log
        lag = max(partition.high_watermark - log.end_offset, 0)
        yield partition.topic, entry(partition.index, log.size_bytes, lag, is_future=False)
    for move in context.parts.moves.into(directory):
        lag = move.partition.log.end_offset - move.future.end_offset
        index = move.partition.index
        yield move.partition.topic, entry(index, move.future.size_bytes, lag, is_future=True)


def entry(
    index: int, size_bytes: int, lag: int, *, is_future: bool
) -> answer.DescribeLogDirsPartition:
    """Describe one partition."""
    return answer.DescribeLogDirsPartition(
        partition_index=index, partition_size=size_bytes, offset_lag=lag, is_future_key=is_future
    )
