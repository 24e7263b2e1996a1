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

from strom.wire import (
    add_partitions_to_txn,
    consumer_group_heartbeat,
    end_txn,
    fetch,
    heartbeat,
    join_group,
    list_offsets,
    offset_commit,
    offset_fetch,
    produce,
    sync_group,
)
from strom.wire.errors import ErrorCode
from strom.wire.guard import guarded_reader
from strom.wire.lazy import import_schema
from strom.wire.primitives import MalformedFrame, skip_tags
from strom.wire.schema_writer import schema_writer
from strom.wire.translate import translator

API_VERSIONS_KEY: Final = 18
#: Key, version, correlation id and the client id's length.
HEADER_BYTES_MIN: Final = 10

#: What the readers, ours and kio's, raise for bytes that are not the message they should be.
NOT_A_MESSAGE: Final = (ValueError, TypeError, OverflowError, EOFError, IndexError, struct.error)

Part = fetch.Part
Hook = Callable[[Any, Any], Any]
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


class ProduceResponse:
    """What became of every batch of a Produce request."""

    __slots__ = ("throttle_ms", "topics")

    def __init__(self, topics: list[produce.ProduceTopicResponse], throttle_ms: int = 0) -> None:
        self.topics = topics
        self.throttle_ms = throttle_ms


class FetchResponse:
    """What a fetcher gets."""

    __slots__ = ("error_code", "session_id", "throttle_ms", "topics")

    def __init__(
        self,
        topics: list[fetch.FetchedTopic],
        error_code: ErrorCode = ErrorCode.NONE,
        session_id: int = 0,
        throttle_ms: int = 0,
    ) -> None:
        self.topics = topics
        self.error_code = error_code
        self.session_id = session_id
        self.throttle_ms = throttle_ms


class Codec(Protocol):
    """Reads the requests and writes the responses of one API at one version."""

    flexible: bool

    def read(self, frame: memoryview, position: int) -> Any:  # noqa: ANN401
        """Return the request as the newest version has it."""

    def write(self, response: Any) -> list[Part]:  # noqa: ANN401
        """Return the response, given as the newest version has it."""


class ProduceCodec:
    """Produce, by hand."""

    def __init__(self, version: int) -> None:
        self.flexible = version >= produce.FLEXIBLE_FROM
        self._version = version

    def read(self, frame: memoryview, position: int) -> produce.ProduceRequest:
        """Return the request; its records are views of the frame."""
        return produce.read_request(frame, position, self._version)

    def write(self, response: ProduceResponse) -> list[Part]:
        """Return the response."""
        return [produce.write_response(response.topics, self._version, response.throttle_ms)]


class FetchCodec:
    """Fetch, by hand."""

    def __init__(self, version: int) -> None:
        self.flexible = version >= fetch.FLEXIBLE_FROM
        self._version = version

    def read(self, frame: memoryview, position: int) -> fetch.FetchRequest:
        """Return the request."""
        return fetch.read_request(frame, position, self._version)

    def write(self, response: FetchResponse) -> list[Part]:
        """Return the response, its records as slices of their files."""
        return fetch.write_response(
            response.topics,
            self._version,
            error_code=response.error_code,
            session_id=response.session_id,
            throttle_ms=response.throttle_ms,
        )


class HandWritten(Protocol):
    """A module that reads and writes one API; its functions are told the version."""

    FLEXIBLE_FROM: int
    read_request: Callable[[memoryview, int, int], Any]
    write_response: Callable[[Any, int], bytes]


class HandWrittenCodec:
    """An API that is read and written by hand, without records."""

    def __init__(self, module: HandWritten, version: int) -> None:
        self.flexible = version >= module.FLEXIBLE_FROM
        self._read = module.read_request
        self._write = module.write_response
        self._version = version

    def read(self, frame: memoryview, position: int) -> object:
        """Return the request."""
        return self._read(frame, position, self._version)

    def write(self, response: object) -> list[Part]:
        """Return the response."""
        return [self._write(response, self._version)]


WITH_RECORDS: Final[dict[str, Callable[[int], Codec]]] = {
    "produce": ProduceCodec,
    "fetch": FetchCodec,
}
BY_HAND: Final[dict[str, Any]] = {
    "list_offsets": list_offsets,
    "offset_commit": offset_commit,
    "offset_fetch": offset_fetch,
    "join_group": join_group,
    "sync_group": sync_group,
    "heartbeat": heartbeat,
    "consumer_group_heartbeat": consumer_group_heartbeat,
    "add_partitions_to_txn": add_partitions_to_txn,
    "end_txn": end_txn,
}


class SchemaCodec:
    """Any other API, by kio's class of the version and of the newest one."""

    def __init__(
        self, name: str, version: int, newest: int, upgrade: Hook | None, downgrade: Hook | None
    ) -> None:
        request, response = (
            load_class(name, version, "request"),
            load_class(name, version, "response"),
        )
        old = version < newest
        self.flexible: bool = request.__flexible__
        self._read = guarded_reader(request)
        self._write = schema_writer(response)
        self._to_newest = translator(request, load_class(name, newest, "request"))
        self._from_newest = translator(load_class(name, newest, "response"), response)
        self._upgrade = upgrade if old else None
        self._downgrade = downgrade if old else None

    def read(self, frame: memoryview, position: int) -> object:
        """Return the request as the newest version has it."""
        # A copy: kio reads from what cannot change, and keeps parts of it.
        request = self._read(bytes(frame[position:]))
        newest = self._to_newest(request)
        return newest if self._upgrade is None else self._upgrade(request, newest)

    def write(self, response: object) -> list[Part]:
        """Return the response, given as the newest version has it."""
        message = self._from_newest(response)
        if self._downgrade is not None:
            message = self._downgrade(response, message)
        return [self._write(message)]


def codec_for(
    name: str, version: int, newest: int, upgrade: Hook | None, downgrade: Hook | None
) -> Codec:
    """Return the codec of the API with this snake-case name, loading its classes."""
    with_records = WITH_RECORDS.get(name)
    if with_records is not None:
        return with_records(version)
    by_hand = BY_HAND.get(name)
    if by_hand is not None:
        return HandWrittenCodec(by_hand, version)
    return SchemaCodec(name, version, newest, upgrade, downgrade)


def load_class(name: str, version: int, kind: str) -> Any:  # noqa: ANN401
    """Return kio's class of a request or response: `create_topics`, 7, `request`."""
    module = import_schema(f"kio.schema.{name}.v{version}.{kind}")
    camel = "".join(word.capitalize() for word in (*name.split("_"), kind))
    return getattr(module, camel)


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
