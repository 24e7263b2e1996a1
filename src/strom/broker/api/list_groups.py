"""ListGroups (key 16): the groups that this broker coordinates.

Behaviour:
- All kinds of groups, also such as have nothing but offsets. Filters name states and types, in any
  case; a name that is not known matches nothing.
- While one of its coordinators loads, the broker does not know yet: COORDINATOR_LOAD_IN_PROGRESS.

Versions:
- v4 brings states and a filter for them, v5 types and theirs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from strom.broker.answers import NO_THROTTLE, answer_of
from strom.broker.context import Context, Large
from strom.groups.overview import Listed, listed
from strom.wire.errors import ErrorCode
from strom.wire.messages import kafka_message

if TYPE_CHECKING:
    from kio.schema.list_groups.v5 import request as asked
    from kio.schema.list_groups.v5 import response as answer

    Reply = answer.ListGroupsResponse
else:
    answer = kafka_message("list_groups", "response")

KEY = 16
VERSIONS = range(6)


def handle(request: asked.ListGroupsRequest, context: Context) -> Reply | Large:
    """List what passes the filters."""
    coordinators = context.parts.groups
    if coordinators.is_loading:
        return answer.ListGroupsResponse(
            throttle_time=NO_THROTTLE,
            error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
            groups=(),
        )
    states, kinds = lowered(request.states_filter), lowered(request.types_filter)
    groups = [
        listed(shard.machine, group_id)
        for shard in coordinators.shards()
        for group_id in shard.machine.group_ids()
    ]
    return answer_of(len(groups), lambda: respond(groups, states, kinds))


def respond(
    groups: Iterable[Listed | None], states: frozenset[str], kinds: frozenset[str]
) -> Reply:
    """Tell of the groups that pass the filters."""
    return answer.ListGroupsResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.NONE,
        groups=tuple(
            described(each)
            for each in groups
            if each is not None and passes(each.phase, states) and passes(each.kind, kinds)
        ),
    )


def lowered(names: Iterable[str]) -> frozenset[str]:
    """Return the names of a filter in lower case."""
    return frozenset(each.lower() for each in names)


def passes(name: str, wanted: frozenset[str]) -> bool:
    """Say whether a filter lets the name pass; an empty one lets everything."""
    return not wanted or name.lower() in wanted


def described(group: Listed) -> answer.ListedGroup:
    """Return a line of the list."""
    return answer.ListedGroup(
        group_id=group.group_id,
        protocol_type=group.protocol_type,
        group_state=group.phase,
        group_type=group.kind,
    )
