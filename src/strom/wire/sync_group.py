"""SyncGroup (key 14), read and written by hand: every member sends it in every round.

v0   the first                             v4   the flexible encoding
v1   throttle time in the answer           v5   the protocol and its type, both ways
v3   the name of a static member
"""

from typing import Final, NamedTuple

from strom.wire.errors import ErrorCode
from strom.wire.primitives import (
    INT16,
    INT32,
    Buffer,
    bytes_of,
    nullable_text,
    read_bytes,
    read_count,
    read_text,
    required,
    skip_tags,
)

THROTTLE_FROM: Final = 1
INSTANCE_ID_FROM: Final = 3
FLEXIBLE_FROM: Final = 4
PROTOCOL_FROM: Final = 5


class SyncGroupRequest(NamedTuple):
    """Who wants its part, and what the leader brings for whom."""

    group_id: str
    generation_id: int
    member_id: str
    instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None
    assignments: dict[str, bytes]


class SyncGroupResponse(NamedTuple):
    """A member's part."""

    error_code: ErrorCode
    protocol_type: str | None
    protocol_name: str | None
    assignment: bytes
    throttle_ms: int = 0


def read_request(frame: Buffer, position: int, version: int) -> SyncGroupRequest:
    """Read the request behind its header."""
    flexible = version >= FLEXIBLE_FROM
    group_id, position = required(read_text(frame, position, flexible))
    (generation_id,) = INT32.unpack_from(frame, position)
    member_id, position = required(read_text(frame, position + 4, flexible))
    instance_id: str | None = None
    if version >= INSTANCE_ID_FROM:
        instance_id, position = read_text(frame, position, flexible)
    protocol_type: str | None = None
    protocol_name: str | None = None
    if version >= PROTOCOL_FROM:
        protocol_type, position = read_text(frame, position, flexible)
        protocol_name, position = read_text(frame, position, flexible)
    count, position = read_count(frame, position, flexible)
    assignments: dict[str, bytes] = {}
    for _ in range(count):
        whose, position = required(read_text(frame, position, flexible))
        assignments[whose], position = required(read_bytes(frame, position, flexible))
        if flexible:
            position = skip_tags(frame, position)
    return SyncGroupRequest(
        group_id, generation_id, member_id, instance_id, protocol_type, protocol_name, assignments
    )


def write_response(response: SyncGroupResponse, version: int) -> bytes:
    """Write the response behind its header."""
    flexible = version >= FLEXIBLE_FROM
    parts = [INT32.pack(response.throttle_ms)] if version >= THROTTLE_FROM else []
    parts.append(INT16.pack(response.error_code))
    if version >= PROTOCOL_FROM:
        parts.append(nullable_text(response.protocol_type, flexible))
        parts.append(nullable_text(response.protocol_name, flexible))
    parts.append(bytes_of(response.assignment, flexible))
    if flexible:
        parts.append(b"\0")
    return b"".join(parts)
