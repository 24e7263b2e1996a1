"""Heartbeat (key 12), read and written by hand: members of classic groups send it all the time.

v0   the first                             v3   the name of a static member
v1   throttle time in the answer           v4   the flexible encoding
"""

import struct
from typing import Final, NamedTuple

from strom.wire.errors import ErrorCode
from strom.wire.primitives import INT16, INT32, Buffer, read_text, required

THROTTLE_FROM: Final = 1
INSTANCE_ID_FROM: Final = 3
FLEXIBLE_FROM: Final = 4

_THROTTLED: Final = struct.Struct(">ih")
_FLEXIBLE: Final = struct.Struct(">ihb")


class HeartbeatRequest(NamedTuple):
    """Who lives, in which generation of what."""

    group_id: str
    generation_id: int
    member_id: str
    instance_id: str | None


class HeartbeatResponse(NamedTuple):
    """Whether all is well."""

    error_code: ErrorCode
    throttle_ms: int = 0


def read_request(frame: Buffer, position: int, version: int) -> HeartbeatRequest:
    """Read the request behind its header."""
    flexible = version >= FLEXIBLE_FROM
    group_id, position = required(read_text(frame, position, flexible))
    (generation_id,) = INT32.unpack_from(frame, position)
    member_id, position = required(read_text(frame, position + 4, flexible))
    instance_id: str | None = None
    if version >= INSTANCE_ID_FROM:
        instance_id, position = read_text(frame, position, flexible)
    return HeartbeatRequest(group_id, generation_id, member_id, instance_id)


def write_response(response: HeartbeatResponse, version: int) -> bytes:
    """Write the response behind its header."""
    if version >= FLEXIBLE_FROM:
        return _FLEXIBLE.pack(response.throttle_ms, response.error_code, 0)
    if version >= THROTTLE_FROM:
        return _THROTTLED.pack(response.throttle_ms, response.error_code)
    return INT16.pack(response.error_code)
