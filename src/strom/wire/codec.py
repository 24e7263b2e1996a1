# Compiled by mypyc.
"""From a frame to the newest version's request, and from its response to bytes.

A frame is a request header and a body. The header's shape depends on the version of the body:

    int16 key, int16 version, int32 correlation id, nullable string client id [, tagged fields]

The tagged fields are there from the first flexible version of the API on. The answer's header
is the correlation id, and tagged fields likewise, except for ApiVersions, whose answer must be
readable by a client that does not know yet what it talks to.
"""

import struct
from collections.abc import Callable
from typing import Any, Final, Protocol

from strom.wire import fetch, produce
from strom.wire.messages import NOT_A_MESSAGE, MessageForm
from strom.wire.primitives import MalformedFrame, skip_tags

API_VERSIONS_KEY: Final = 18
#: Key, version, correlation id and the client id's length.
HEADER_BYTES_MIN: Final = 10

Part = fetch.Part
#: Changes a request that was read, or a response before it is written, in a version.
Hook = Callable[[Any, int], None]
_HEADER: Final = struct.Struct(">hhih")
_HEAD: Final = struct.Struct(">ii")


class RequestHeader:
    """What stands in front of every request."""

    __slots__ = ("api_key", "client_id", "correlation_id", "end", "version")

    def __init__(
        self, api_key: int, version: int, correlation_id: int, client_id: str | None, end: int
    ) -> None:
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        #: Where the tagged fields of the header begin, or the body if it has none.
        self.end = end


class Codec(Protocol):
    """Reads the requests and writes the responses of one API at one version."""

    flexible: bool

    def read(self, frame: memoryview, position: int) -> Any:  # noqa: ANN401
        """Return the request as the newest version has it."""

    def write(self, response: Any) -> list[Part]:  # noqa: ANN401
        """Return the response, given as the newest version has it."""


class HandWritten(Protocol):
    """A module that reads and writes one API by hand: Produce or Fetch."""

    FLEXIBLE_FROM: int
    read_request: Callable[[memoryview, int, int], Any]
    write_response: Callable[[Any, int], list[Part]]


class HandWrittenCodec:
    """The codec of a module that is written by hand."""

    def __init__(self, module: HandWritten, version: int) -> None:
        self.flexible = version >= module.FLEXIBLE_FROM
        self._read = module.read_request
        self._write = module.write_response
        self._version = version

    def read(self, frame: memoryview, position: int) -> object:
        """Return the request; the records in it are views of the frame."""
        return self._read(frame, position, self._version)

    def write(self, response: object) -> list[Part]:
        """Return the response, records as slices of their files."""
        return self._write(response, self._version)


class MadeCodec:
    """The codec of an API whose readers and writers are made from a schema."""

    def __init__(
        self,
        request: MessageForm,
        response: MessageForm,
        version: int,
        upgrade: Hook | None,
        downgrade: Hook | None,
    ) -> None:
        self.flexible = version >= request.flexible_since
        self._read = request.reader(version)
        self._write = response.writer(version)
        self._version = version
        self._upgrade = upgrade
        self._downgrade = downgrade

    def read(self, frame: memoryview, position: int) -> object:
        """Return the request as the newest version has it."""
        request = self._read(frame, position)[0]
        if self._upgrade is not None:
            self._upgrade(request, self._version)
        return request

    def write(self, response: object) -> list[Part]:
        """Return the response, given as the newest version has it."""
        if self._downgrade is not None:
            self._downgrade(response, self._version)
        out = bytearray()
        self._write(out, response)
        return [bytes(out)]


BY_HAND: Final[dict[str, Any]] = {"produce": produce, "fetch": fetch}


def read_header(frame: memoryview) -> RequestHeader:
    """Read the request header up to its tagged fields."""
    if len(frame) < HEADER_BYTES_MIN:
        raise MalformedFrame("a request is shorter than its header")
    api_key, version, correlation_id, size = _HEADER.unpack_from(frame)
    if size < 0:
        return RequestHeader(api_key, version, correlation_id, None, HEADER_BYTES_MIN)
    end = HEADER_BYTES_MIN + size
    if end > len(frame):
        raise MalformedFrame("a client id is longer than its frame")
    client_id = str(frame[HEADER_BYTES_MIN:end], "utf-8", "replace")
    return RequestHeader(api_key, version, correlation_id, client_id, end)


def read_body(frame: memoryview, header: RequestHeader, codec: Codec) -> Any:  # noqa: ANN401
    """Read the request behind its header; whatever is wrong with it is a MalformedFrame."""
    try:
        position = skip_tags(frame, header.end) if codec.flexible else header.end
        return codec.read(frame, position)
    except NOT_A_MESSAGE as error:
        raise MalformedFrame(f"{type(error).__name__}: {error}") from error


def write_head(header: RequestHeader, codec: Codec, body_bytes: int) -> bytes:
    """Return the frame's length and the response header in front of the body."""
    if codec.flexible and header.api_key != API_VERSIONS_KEY:
        return _HEAD.pack(body_bytes + 5, header.correlation_id) + b"\0"
    return _HEAD.pack(body_bytes + 4, header.correlation_id)
