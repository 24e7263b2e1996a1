"""A client that says exactly what it is told: any request at any version, or any bytes at all.

Requests are written as dicts with the newest names of their fields; a field that a version does
not have is left out, one that is not given takes its default. Answers come back as dicts.
"""

import dataclasses
import datetime
import enum
import io
import socket
import struct
import types
import typing
from functools import cache
from uuid import UUID

from kio.index import load_entity_schema
from kio.schema.index import schema_name_map
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from tests.patience import PATIENCE_SECONDS

#: Longer than any machine stalls.
NO_ID = UUID(int=0)


@cache
def schema(name, version, kind):
    return load_entity_schema(name, version, EntityType[kind])


@cache
def reader_of(entity):
    return entity_reader(entity)


@cache
def writer_of(entity):
    return entity_writer(entity)


@cache
def hints(entity):
    return typing.get_type_hints(entity)


def versions_known(name):
    """The versions of an API that kio has classes for."""
    return sorted(schema_name_map[name])


def bare(hint):
    """A type without its None."""
    if isinstance(hint, types.UnionType):
        (hint,) = (each for each in typing.get_args(hint) if each is not types.NoneType)
    return hint


def build(entity, values):
    """An entity from a dict of some of its fields."""
    given = {}
    for field in dataclasses.fields(entity):
        hint = hints(entity)[field.name]
        if field.name in values:
            given[field.name] = convert(bare(hint), values[field.name])
        elif field.default is dataclasses.MISSING:
            given[field.name] = blank(hint)
    return entity(**given)


def convert(hint, value):
    if value is None:
        return None
    if typing.get_origin(hint) is tuple:
        return tuple(convert(typing.get_args(hint)[0], each) for each in value)
    if dataclasses.is_dataclass(hint):
        return build(hint, value)
    if issubclass(hint, datetime.timedelta):
        return datetime.timedelta(milliseconds=value)
    if issubclass(hint, datetime.datetime):
        return datetime.datetime.fromtimestamp(value / 1000, datetime.UTC)
    return value


def blank(hint):
    """The value of a field that nobody gave."""
    if isinstance(hint, types.UnionType):
        return None
    if typing.get_origin(hint) is tuple:
        return ()
    if dataclasses.is_dataclass(hint):
        return build(hint, {})
    if issubclass(hint, datetime.timedelta):
        return datetime.timedelta()
    if issubclass(hint, UUID):
        return None
    return next(kind() for kind in (str, bytes, int, bool, float) if issubclass(hint, kind))


def plain(value):
    """An answer as dicts, lists, numbers and strings."""
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, datetime.timedelta):
        return round(value.total_seconds() * 1000)
    if isinstance(value, datetime.datetime):
        return round(value.timestamp() * 1000)
    return value


def written(entity):
    buffer = io.BytesIO()
    writer_of(type(entity))(buffer, entity)
    return buffer.getvalue()


def framed(payload):
    return struct.pack(">i", len(payload)) + payload


def encode(name, version, values, correlation=0, client_id="raw"):
    """A whole frame."""
    request = build(schema(name, version, "request"), values)
    header = build(
        request.__header_schema__,
        {
            "request_api_key": request.__api_key__,
            "request_api_version": version,
            "correlation_id": correlation,
            "client_id": client_id,
        },
    )
    return framed(written(header) + written(request))


class Raw:
    """One connection."""

    def __init__(self, bootstrap, client_id="raw"):
        host, port = bootstrap.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), PATIENCE_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.stream = self.socket.makefile("rb")
        self.client_id = client_id
        self.correlation = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.stream.close()
        self.socket.close()

    def encode(self, name, version, values):
        """A whole frame, with the next correlation id."""
        self.correlation += 1
        return encode(name, version, values, self.correlation, self.client_id)

    def send(self, name, version, values):
        """Send a request without waiting; its correlation id."""
        self.send_bytes(self.encode(name, version, values))
        return self.correlation

    def send_bytes(self, data):
        self.socket.sendall(data)

    def read_frame(self):
        """The next frame, or None when the other side has closed."""
        try:
            size = self.stream.read(4)
            return self.stream.read(*struct.unpack(">i", size)) if len(size) == 4 else None
        except ConnectionResetError:
            return None

    def receive(self, name, version):
        """The next answer, which must be of this API: its correlation id, and itself."""
        frame = self.read_frame()
        assert frame is not None, f"the connection was closed instead of answering {name} {version}"
        return decode(name, version, frame)

    def ask(self, name, version, values=None):
        """Send a request and return its answer."""
        sent = self.send(name, version, values or {})
        correlation, answer = self.receive(name, version)
        assert correlation == sent
        return answer

    def closed(self):
        """Whether the other side closes without another answer."""
        return self.read_frame() is None


def decode(name, version, frame):
    response = schema(name, version, "response")
    header, size = reader_of(response.__header_schema__)(frame, 0)
    answer, used = reader_of(response)(frame, size)
    assert size + used == len(frame), "bytes are left over"
    return header.correlation_id, plain(answer)
