"""AlterReplicaLogDirs (key 34): move replicas of this broker to others of its log directories.

Behaviour:
- The answer says whether the move has begun; DescribeLogDirs shows how far it is. The partition is
  written and read all the while, see `broker.moves`.
- To name the directory that the replica is in takes a move back; to name a third one goes there.
- A path that is no log directory is LOG_DIR_NOT_FOUND, a failed one KAFKA_STORAGE_ERROR, a
  partition that is not here UNKNOWN_TOPIC_OR_PARTITION.

Versions:
- v1 and v2 differ in encoding only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strom.broker.answers import NO_THROTTLE
from strom.broker.context import Context
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.lazy import lazy

if TYPE_CHECKING:
    from kio.schema.alter_replica_log_dirs.v2 import request as asked
    from kio.schema.alter_replica_log_dirs.v2 import response as answer
else:
    answer = lazy("kio.schema.alter_replica_log_dirs.v2.response")

KEY = 34
VERSIONS = range(1, 3)


def handle(
    request: asked.AlterReplicaLogDirsRequest, context: Context
) -> answer.AlterReplicaLogDirsResponse:
    """Begin every move."""
    by_topic: dict[str, list[answer.AlterReplicaLogDirPartitionResult]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            results = by_topic.setdefault(topic.name, [])
            for index in topic.partitions:
                code = begin(topic.name, index, directory.path, context)
                results.append(
                    answer.AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
                )
    return answer.AlterReplicaLogDirsResponse(
        throttle_time=NO_THROTTLE,
        results=tuple(
            answer.AlterReplicaLogDirTopicResult(topic_name=name, partitions=tuple(results))
            for name, results in by_topic.items()
        ),
    )


def begin(topic: str, index: int, path: str, context: Context) -> ErrorCode:
    """Begin one move, or say why not."""
    try:
        context.parts.moves.begin(topic, index, path)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE
