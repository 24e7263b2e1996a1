"""AlterReplicaLogDirs (key 34): move replicas of this broker to others of its log directories.

Behaviour:
- The answer says whether the move has begun; DescribeLogDirs shows how far it is. The partition is
  written and read all the while, see `broker.moves`.
- To name the directory that the replica is in takes a move back; to name a third one goes there.
- A path that is no log directory is LOG_DIR_NOT_FOUND, a failed one KAFKA_STORAGE_ERROR, a
  cordoned one INVALID_REPLICA_ASSIGNMENT, also for what is in it; a partition that is not here
  is UNKNOWN_TOPIC_OR_PARTITION.
- A topic whose name is so long that a copy's directory cannot have all of it, from 214 characters
  on, is INVALID_TOPIC_EXCEPTION: after a crash nobody would know whose copy that is.
- A partition that is named several times is answered once, and goes where the last one says.

Versions:
- v1 and v2 differ in encoding only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strom.broker.answers import NO_THROTTLE, require_few
from strom.broker.context import Context
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import kafka_message

if TYPE_CHECKING:
    from kio.schema.alter_replica_log_dirs.v2 import request as asked
    from kio.schema.alter_replica_log_dirs.v2 import response as answer

    Reply = answer.AlterReplicaLogDirsResponse
else:
    answer = kafka_message("alter_replica_log_dirs", "response")

KEY = 34
VERSIONS = range(1, 3)


def handle(request: asked.AlterReplicaLogDirsRequest, context: Context) -> Reply:
    """Begin every move."""
    paths = {
        (topic.name, index): directory.path
        for directory in request.dirs
        for topic in directory.topics
        for index in topic.partitions
    }
    require_few(len(paths))
    by_topic: dict[str, list[answer.AlterReplicaLogDirPartitionResult]] = {}
    for (name, index), path in paths.items():
        result = answer.AlterReplicaLogDirPartitionResult(
            partition_index=index, error_code=begin(name, index, path, context)
        )
        by_topic.setdefault(name, []).append(result)
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
