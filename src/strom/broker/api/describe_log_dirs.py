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
from typing import TYPE_CHECKING, NamedTuple

from strom.broker.answers import NO_THROTTLE, answer_of
from strom.broker.context import Context, Large, Ordered
from strom.log.directory import LogDirectory
from strom.log.log import Log
from strom.replication.partition import Partition
from strom.wire.errors import ErrorCode
from strom.wire.messages import kafka_message

if TYPE_CHECKING:
    from kio.schema.describe_log_dirs.v5 import request as asked
    from kio.schema.describe_log_dirs.v5 import response as answer

    Reply = answer.DescribeLogDirsResponse
else:
    answer = kafka_message("describe_log_dirs", "response")

KEY = 35
VERSIONS = range(1, 6)

UNKNOWN_BYTES = -1


class Volume(NamedTuple):
    """The file system that a directory is on."""

    total_bytes: int
    usable_bytes: int


class Held(NamedTuple):
    """A log in a directory."""

    topic: str
    partition_index: int
    size_bytes: int
    lag: int
    is_future: bool


def handle(request: asked.DescribeLogDirsRequest, context: Context) -> Ordered:
    """Describe every directory; with all that lies there, one at a time for a client."""
    return Ordered(describe_all(request, context))


async def describe_all(request: asked.DescribeLogDirsRequest, context: Context) -> Reply | Large:
    """Describe every directory."""
    directories = context.replicas.directories
    paths = [each.path for each in directories if each.failed is None]
    volumes = await context.parts.host.offload(lambda: {path: volume_of(path) for path in paths})
    wanted = wanted_partitions(request)
    held = [logs_in(each, wanted, context) for each in directories]
    # One may have failed while the volumes were asked for.
    known = [None if each.failed is not None else volumes.get(each.path) for each in directories]

    def build() -> Reply:
        results = [
            describe(directory, volume, logs)
            for directory, volume, logs in zip(directories, known, held, strict=True)
        ]
        return answer.DescribeLogDirsResponse(
            throttle_time=NO_THROTTLE, error_code=ErrorCode.NONE, results=tuple(results)
        )

    return answer_of(sum(map(len, held)), build)


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


def logs_in(
    directory: LogDirectory, wanted: set[tuple[str, int]] | None, context: Context
) -> list[Held]:
    """List the logs in a directory, those that move into it last."""
    held: list[tuple[Partition, Log | None]] = [
        *[(each, None) for each in context.replicas.partitions_in(directory)],
        *[(move.partition, move.future) for move in context.parts.moves.into(directory)],
    ]
    if wanted is not None:
        held = [each for each in held if (each[0].topic, each[0].index) in wanted]
    return [measured(*each) for each in held]


def measured(partition: Partition, future: Log | None) -> Held:
    """Return how large the partition's log is, or a future one, and how far it is behind."""
    log = future or partition.log
    target = partition.high_watermark if future is None else partition.log.end_offset
    lag = max(target - log.end_offset, 0)
    return Held(partition.topic, partition.index, log.size_bytes, lag, future is not None)


def describe(
    directory: LogDirectory, volume: Volume | None, held: list[Held]
) -> answer.DescribeLogDirsResult:
    """Describe one directory."""
    if volume is None:
        return answer.DescribeLogDirsResult(
            error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=directory.path, topics=()
        )
    by_topic: dict[str, list[answer.DescribeLogDirsPartition]] = {}
    for each in held:
        by_topic.setdefault(each.topic, []).append(
            answer.DescribeLogDirsPartition(
                partition_index=each.partition_index,
                partition_size=each.size_bytes,
                offset_lag=each.lag,
                is_future_key=each.is_future,
            )
        )
    return answer.DescribeLogDirsResult(
        error_code=ErrorCode.NONE,
        log_dir=directory.path,
        topics=tuple(
            answer.DescribeLogDirsTopic(name=name, partitions=tuple(by_topic[name]))
            for name in sorted(by_topic)
        ),
        total_bytes=volume.total_bytes,
        usable_bytes=volume.usable_bytes,
        is_cordoned=directory.is_cordoned,
    )
