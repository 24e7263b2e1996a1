"""DeleteGroups (key 42): delete groups that have no members, with the offsets they committed.

Behaviour:
- Each group by itself: NON_EMPTY_GROUP if it has members, GROUP_ID_NOT_FOUND if there is none.
- A group that has nothing but offsets is a group too.

Versions:
- v0 to v2 differ in encoding only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strom.broker.answers import NO_THROTTLE
from strom.broker.context import Context
from strom.groups.overview import delete
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.lazy import lazy

if TYPE_CHECKING:
    from kio.schema.delete_groups.v2 import request as asked
    from kio.schema.delete_groups.v2 import response as answer
else:
    answer = lazy("kio.schema.delete_groups.v2.response")

KEY = 42
VERSIONS = range(3)


async def handle(
    request: asked.DeleteGroupsRequest, context: Context
) -> answer.DeleteGroupsResponse:
    """Delete each group, once."""
    return answer.DeleteGroupsResponse(
        throttle_time=NO_THROTTLE,
        results=tuple(
            [
                answer.DeletableGroupResult(
                    group_id=each, error_code=await delete_one(each, context)
                )
                for each in dict.fromkeys(request.groups_names)
            ]
        ),
    )


async def delete_one(group_id: str, context: Context) -> ErrorCode:
    """Delete a group, or say why not."""
    try:
        shard = context.parts.groups.shard_for(group_id)
        return await shard.execute(delete, shard.machine, group_id)
    except KafkaError as error:
        return error.code
