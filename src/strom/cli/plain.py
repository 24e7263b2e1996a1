"""Asks one broker over a plain socket what the client library has no call for.

There is no TLS or SASL here: a cluster that wants it must be asked on a plain listener.
"""

import socket
from io import BytesIO
from typing import Any, BinaryIO, TypeVar

from strom.cli.failure import Failure
from strom.wire.primitives import INT16, INT32, MalformedFrame
from strom.wire.versioned import read_message

ANSWER_SECONDS_MAX = 10.0
CLIENT_ID = b"strom"

Response = TypeVar("Response")


def ask(address: tuple[str, int], request: Any, response: type[Response]) -> Response:  # noqa: ANN401 - any of kio's
    """Send one request with the flexible header; return its response, kio's or one declared."""
    from kio.serial import entity_writer
    from kio.serial.errors import SerialError

    head = INT16.pack(request.__api_key__) + INT16.pack(request.__version__) + INT32.pack(0)
    with BytesIO() as out:
        entity_writer(type(request))(out, request)
        # A client id, then a header without tagged fields.
        frame = head + INT16.pack(len(CLIENT_ID)) + CLIENT_ID + b"\0" + out.getvalue()
    try:
        with socket.create_connection(address, timeout=ANSWER_SECONDS_MAX) as link:
            link.sendall(INT32.pack(len(frame)) + frame)
            with link.makefile("rb") as answers:
                answer = read_frame(answers)
        return read_as(response, request.__version__, answer)
    except OSError as error:
        raise Failure(f"the broker did not answer: {error}") from None
    except (SerialError, MalformedFrame, ValueError, OverflowError):
        raise Failure(
            f"{address[0]}:{address[1]} did not answer as a broker does: is that a Kafka port, "
            "and a plain one? There is no TLS or SASL here"
        ) from None


def read_as(response: type[Response], version: int, answer: bytes) -> Response:
    """Return the response; kio's, or one declared here that holds what kio's does not."""
    from kio.serial import entity_reader

    # Behind the correlation id and the header's empty tagged fields.
    position = INT32.size + 1
    read: Response
    if hasattr(response, "__newest__"):
        read = read_message(response, version, answer, position)
    else:
        read, _ = entity_reader(response)(answer, position)  # type: ignore[type-var]
    return read


def read_frame(answers: BinaryIO) -> bytes:
    """Return an answer without its size; ValueError if what came is none."""
    head = answers.read(INT32.size)
    size = INT32.unpack(head)[0] if len(head) == INT32.size else -1
    answer = answers.read(size) if size > INT32.size else b""
    if not answer or len(answer) < size:
        raise ValueError("no answer, or not all of it")
    return answer
