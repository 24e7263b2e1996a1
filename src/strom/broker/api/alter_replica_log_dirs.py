"""AlterReplicaLogDirs (key 34): move replicas of this broker to others of its log directories.

Behaviour:
- The answer says whether the move has begun; DescribeLogDirs shows how far it is. The partition is
  written and read all the while, see `broker.moves`.
- To name the directory that the replica is in takes a move back; to name a third one goes there.
- Many partitions take several turns on the loop; later requests of the connection wait for them.
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

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from strom.broker.answers import NO_THROTTLE
from strom.broker.context import Context, Ordered
from strom.broker.turns import answer_each
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


class Wish(NamedTuple):
    """Where a partition is to go."""

    topic: str
    partition_index: int
    path: str


def handle(request: asked.AlterReplicaLogDirsRequest, context: Context) -> Reply | Ordered:
    """Begin every move."""
    paths = {
        (topic.name, index): directory.path
        for directory in request.dirs
        for topic in directory.topics
        for index in topic.partitions
    }
    wishes = [Wish(*partition, path) for partition, path in paths.items()]
    return answer_each(
        wishes,
        lambda wish: begin(wish, context),
        lambda codes: respond(wishes, codes),
        context.parts.host.offload,
    )


def respond(wishes: Iterable[Wish], codes: Iterable[ErrorCode]) -> Reply:
    """Tell what became of every wish, by topic."""
    by_topic: dict[str, list[answer.AlterReplicaLogDirPartitionResult]] = {}
    for wish, code in zip(wishes, codes, strict=True):
        result = answer.AlterReplicaLogDirPartitionResult(
            partition_index=wish.partition_index, error_code=code
        )
        by_topic.setdefault(wish.topic, []).append(result)
    return answer.AlterReplicaLogDirsResponse(
        throttle_time=NO_THROTTLE,
        results=tuple(
            answer.AlterReplicaLogDirTopicResult(topic_name=name, partitions=tuple(results))
            for name, results in by_topic.items()
        ),
    )


def begin(wish: Wish, context: Context) -> ErrorCode:
    """Begin one move, or say why not."""
    try:
        context.parts.moves.begin(*wish)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE
