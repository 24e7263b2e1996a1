"""Asks one broker over a plain socket what the client library has no call for.

There is no TLS or SASL here: a cluster that wants it must be asked on a plain listener.
"""

import socket
from typing import Any, BinaryIO

from strom.cli.failure import Failure
from strom.wire.messages import Call
from strom.wire.primitives import INT16, INT32, MalformedFrame

ANSWER_SECONDS_MAX = 10.0
CLIENT_ID = b"strom"


def ask(address: tuple[str, int], call: Call, request: object) -> Any:  # noqa: ANN401 - any response
    """Send one request with the flexible header; return its response."""
    head = INT16.pack(call.key) + INT16.pack(call.version) + INT32.pack(0)
    # A client id, then a header without tagged fields.
    frame = head + INT16.pack(len(CLIENT_ID)) + CLIENT_ID + b"\0" + call.write(request)
    try:
        with socket.create_connection(address, timeout=ANSWER_SECONDS_MAX) as link:
            link.sendall(INT32.pack(len(frame)) + frame)
            with link.makefile("rb") as answers:
                answer = read_frame(answers)
        # Behind the correlation id and the header's empty tagged fields.
        return call.read(answer, INT32.size + 1)
    except OSError as error:
        raise Failure(f"the broker did not answer: {error}") from None
    except (MalformedFrame, ValueError):
        raise Failure(
            f"{address[0]}:{address[1]} did not answer as a broker does: is that a Kafka port, "
            "and a plain one? There is no TLS or SASL here"
        ) from None


def read_frame(answers: BinaryIO) -> bytes:
    """Return an answer without its size; ValueError if what came is none."""
    head = answers.read(INT32.size)
    size = INT32.unpack(head)[0] if len(head) == INT32.size else -1
    answer = answers.read(size) if size > INT32.size else b""
    if not answer or len(answer) < size:
        raise ValueError("no answer, or not all of it")
    return answer
