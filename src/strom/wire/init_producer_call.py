"""InitProducerId (key 22) as one who asks, written and read by hand, at version 4, for a producer
outside of transactions; `metadata_call` says why.
"""

import struct
from typing import NamedTuple

from strom.wire.errors import ErrorCode
from strom.wire.primitives import MalformedFrame

KEY = 22
VERSION = 4

#: No transactional id, no time-out, no id and no epoch yet, no tags.
REQUEST = struct.pack(">BiqhB", 0, 0, -1, -1, 0)
#: How long the answer was held back, error, id and epoch.
_ANSWER = struct.Struct(">ihqh")


class Answer(NamedTuple):
    """Who one is from now on."""

    error: ErrorCode
    id: int
    epoch: int


def read_answer(body: memoryview) -> Answer:
    """Read the answer behind its header; whatever is wrong with it is a MalformedFrame."""
    try:
        _, error, producer_id, epoch = _ANSWER.unpack_from(body)
        return Answer(ErrorCode(error), producer_id, epoch)
    except (struct.error, ValueError) as error:
        raise MalformedFrame(f"no answer to an InitProducerId request: {error}") from None
