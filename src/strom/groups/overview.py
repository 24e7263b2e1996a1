"""Groups as tools see them: which there are, and how one is deleted with all that it committed."""

from typing import NamedTuple

from strom.groups import committing
from strom.groups.classic.group import ClassicGroup
from strom.groups.machine import GroupMachine
from strom.groups.members import find
from strom.replicated.machine import Decision, KeyValue
from strom.wire.errors import ErrorCode, KafkaError

CLASSIC = "classic"
#: Both a kind of group and, of a classic one, what it is for.
CONSUMER = "consumer"


class Listed(NamedTuple):
    """A group in a list."""

    group_id: str
    protocol_type: str
    phase: str
    kind: str


def listed(machine: GroupMachine, group_id: str) -> Listed | None:
    """Return what a list says of one group; None if it is gone."""
    group = find(machine, group_id)
    if group is None:
        return None
    if isinstance(group, ClassicGroup):
        return Listed(group_id, group.protocol_type or "", group.phase, CLASSIC)
    return Listed(group_id, CONSUMER, group.phase, CONSUMER)


def find_classic(machine: GroupMachine, group_id: str) -> ClassicGroup:
    """Return the group; refuse with a KafkaError if there is none, or one of another kind."""
    group = find(machine, group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    if not isinstance(group, ClassicGroup):
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a classic group.")
    return group


def rounds_to_delete(machine: GroupMachine, group_id: str) -> int:
    """Return how many decisions it takes to delete the group: each must fit into a batch."""
    count = len(machine.offsets.places(group_id))
    return max(-(-count // committing.RECORDS_MAX), 1)


def delete(machine: GroupMachine, group_id: str) -> Decision[KeyValue, ErrorCode]:
    """Delete a group without members, and its offsets; refuse with a KafkaError any other.

    Of many offsets the first go, and the group stays until it is deleted with the last.
    """
    owner = machine.owner(group_id)
    if owner is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
    if not owner.is_empty():
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
    records = committing.portion(machine.offsets.tombstones(group_id))
    if rounds_to_delete(machine, group_id) > 1:
        return Decision(records, ErrorCode.NONE)
    return Decision((*records, *owner.tombstones()), ErrorCode.NONE, soft=((group_id, None),))
