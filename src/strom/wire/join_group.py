"""JoinGroup (key 11), read and written by hand: every member sends it in every round.

v0   the first                             v6   the flexible encoding
v1   a time-out for the round              v7   the protocol's type in the answer
v2   throttle time in the answer           v8   a reason, which nobody asks for here
v5   the names of static members           v9   whether the leader's part is done already
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from strom.wire.errors import ErrorCode
from strom.wire.primitives import (
    INT16,
    INT32,
    Buffer,
    bytes_of,
    count_of,
    nullable_text,
    read_bytes,
    read_count,
    read_text,
    required,
    skip_tags,
    text,
)

REBALANCE_TIMEOUT_FROM: Final = 1
THROTTLE_FROM: Final = 2
INSTANCE_ID_FROM: Final = 5
FLEXIBLE_FROM: Final = 6
PROTOCOL_TYPE_FROM: Final = 7
SKIPPING_FROM: Final = 9

NO_TIMEOUT: Final = -1


class JoinGroupRequest(NamedTuple):
    """Who wants to join what, and what it can do."""

    group_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    member_id: str
    instance_id: str | None
    protocol_type: str
    #: The name of each, and what the member says of itself under it.
    protocols: list[tuple[str, bytes]]


class JoinGroupResponse(NamedTuple):
    """What a member is in, or why it is not."""

    error_code: ErrorCode
    generation_id: int
    protocol_type: str | None
    protocol_name: str | None
    leader: str
    skip_assignment: bool
    member_id: str
    #: For the leader: id, name if it is static, and what it says of itself.
    members: Iterable[tuple[str, str | None, bytes]]
    throttle_ms: int = 0


def read_request(frame: Buffer, position: int, version: int) -> JoinGroupRequest:
    """Read the request behind its header."""
    flexible = version >= FLEXIBLE_FROM
    group_id, position = required(read_text(frame, position, flexible))
    (session_timeout_ms,) = INT32.unpack_from(frame, position)
    position += 4
    rebalance_timeout_ms = NO_TIMEOUT
    if version >= REBALANCE_TIMEOUT_FROM:
        (rebalance_timeout_ms,) = INT32.unpack_from(frame, position)
        position += 4
    member_id, position = required(read_text(frame, position, flexible))
    instance_id: str | None = None
    if version >= INSTANCE_ID_FROM:
        instance_id, position = read_text(frame, position, flexible)
    protocol_type, position = required(read_text(frame, position, flexible))
    count, position = read_count(frame, position, flexible)
    protocols: list[tuple[str, bytes]] = []
    for _ in range(count):
        name, position = required(read_text(frame, position, flexible))
        metadata, position = required(read_bytes(frame, position, flexible))
        if flexible:
            position = skip_tags(frame, position)
        protocols.append((name, metadata))
    return JoinGroupRequest(
        group_id,
        session_timeout_ms,
        rebalance_timeout_ms,
        member_id,
        instance_id,
        protocol_type,
        protocols,
    )


def write_response(response: JoinGroupResponse, version: int) -> bytes:
    """Write the response behind its header."""
    flexible = version >= FLEXIBLE_FROM
    parts = [INT32.pack(response.throttle_ms)] if version >= THROTTLE_FROM else []
    parts += (INT16.pack(response.error_code), INT32.pack(response.generation_id))
    if version >= PROTOCOL_TYPE_FROM:
        parts.append(nullable_text(response.protocol_type, flexible))
        parts.append(nullable_text(response.protocol_name, flexible))
    else:
        parts.append(text(response.protocol_name or "", flexible))
    parts.append(text(response.leader, flexible))
    if version >= SKIPPING_FROM:
        parts.append(b"\1" if response.skip_assignment else b"\0")
    parts.append(text(response.member_id, flexible))
    _write_members(response, version, parts)
    if flexible:
        parts.append(b"\0")
    return b"".join(parts)


def _write_members(response: JoinGroupResponse, version: int, parts: list[bytes]) -> None:
    flexible = version >= FLEXIBLE_FROM
    members = list(response.members)
    parts.append(count_of(len(members), flexible))
    for member_id, instance_id, metadata in members:
        parts.append(text(member_id, flexible))
        if version >= INSTANCE_ID_FROM:
            parts.append(nullable_text(instance_id, flexible))
        parts.append(bytes_of(metadata, flexible))
        if flexible:
            parts.append(b"\0")
