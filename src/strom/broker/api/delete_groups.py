"""DeleteGroups (key 42): delete groups that have no members, with the offsets they committed.

Behaviour:
- Each group by itself: NON_EMPTY_GROUP if it has members, GROUP_ID_NOT_FOUND if there is none.
- A group that has nothing but offsets is a group too.
- Offsets that do not fit into one batch of the coordinator's log are written in several.

Versions:
- v0 to v2 differ in encoding only.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING

from strom.broker.answers import NO_THROTTLE, require_few
from strom.broker.context import Context
from strom.groups.overview import delete, rounds_to_delete
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import kafka_message

if TYPE_CHECKING:
    from kio.schema.delete_groups.v2 import request as asked
    from kio.schema.delete_groups.v2 import response as answer
else:
    answer = kafka_message("delete_groups", "response")

KEY = 42
VERSIONS = range(3)


async def handle(
    request: asked.DeleteGroupsRequest, context: Context
) -> answer.DeleteGroupsResponse:
    """Delete each group, once."""
    require_few(len(request.groups_names))
    results = [
        answer.DeletableGroupResult(group_id=each, error_code=await delete_one(each, context))
        for each in dict.fromkeys(request.groups_names)
    ]
    return answer.DeleteGroupsResponse(throttle_time=NO_THROTTLE, results=tuple(results))


async def delete_one(group_id: str, context: Context) -> ErrorCode:
    """Delete a group, or say why not."""
    try:
        shard = context.parts.groups.shard_for(group_id)
        # All in one turn: nobody joins a group that is half gone. Who waits for the last of it
        # has waited for the rest.
        for _ in range(rounds_to_delete(shard.machine, group_id) - 1):
            reply = shard.run(delete, shard.machine, group_id)
            if isinstance(reply, Coroutine):
                reply.close()
        return await shard.execute(delete, shard.machine, group_id)
    except KafkaError as error:
        return error.code
