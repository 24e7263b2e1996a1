"""EndTxn (key 26), read and written by hand: with small transactions it is every other request.

v0   the first                             v5   the producer as it goes on, in the answer
v3   the flexible encoding
"""

import struct
from typing import Final, NamedTuple

from strom.wire.errors import ErrorCode
from strom.wire.primitives import Buffer, read_text, required

FLEXIBLE_FROM: Final = 3
PRODUCER_FROM: Final = 5

_PRODUCER: Final = struct.Struct(">qh?")
_ANSWER: Final = struct.Struct(">ih")
_FLEXIBLE_ANSWER: Final = struct.Struct(">ihb")
_PRODUCER_ANSWER: Final = struct.Struct(">ihqhb")


class EndTxnRequest(NamedTuple):
    """Whose transaction ends, and how."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool


class EndTxnResponse(NamedTuple):
    """The producer as it goes on, or why not."""

    error_code: ErrorCode
    producer_id: int
    producer_epoch: int
    throttle_ms: int = 0


def read_request(frame: Buffer, position: int, version: int) -> EndTxnRequest:
    """Read the request behind its header."""
    name, position = required(read_text(frame, position, version >= FLEXIBLE_FROM))
    producer_id, producer_epoch, committed = _PRODUCER.unpack_from(frame, position)
    return EndTxnRequest(name, producer_id, producer_epoch, committed)


def write_response(response: EndTxnResponse, version: int) -> bytes:
    """Write the response behind its header."""
    code, producer_id, producer_epoch, throttle_ms = response
    if version >= PRODUCER_FROM:
        return _PRODUCER_ANSWER.pack(throttle_ms, code, producer_id, producer_epoch, 0)
    if version >= FLEXIBLE_FROM:
        return _FLEXIBLE_ANSWER.pack(throttle_ms, code, 0)
    return _ANSWER.pack(throttle_ms, code)
