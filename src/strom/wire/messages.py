"""Readers and writers of messages: made at build time, or here at first use.

A build writes a module for each of Kafka's messages into `strom.wire.made`; mypyc compiles those
that clients send all the time. A checkout has none: here the same source is made of the same
schema when a version is first met.

    create_topics = kafka_message("create_topics", "request")
    request, end = create_topics.reader(7)(frame, position)
    create_topics.CreatableTopic(name="flights")

To add an API is to declare what its messages are, and to write its handler, in one module:

    @message(newest=2, flexible_since=1)
    class Request:
        name: str = of("string")
        count: int = of("int32", since=2, default=1)

    @message(newest=2, flexible_since=1)
    class Response:
        names: tuple[str, ...] = of("string")

    KEY, VERSIONS, MESSAGES = 1000, range(3), (Request, Response)

    def handle(request: Request, context: Context) -> Response:
        return Response(names=(request.name,) * request.count)
"""

import struct
from collections.abc import Callable, Hashable
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from strom.wire.primitives import Buffer, MalformedFrame
from strom.wire.schema import Schema, classes_in, schema_of

Reader = Callable[[Buffer, int], tuple[Any, int]]
Writer = Callable[[bytearray, Any], None]

#: The package of what was made at build time.
MADE = "strom.wire.made"
#: What was made here, by the names of messages.
_MODULES: dict[str, ModuleType] = {}
#: What readers raise for bytes that are not the message they should be.
NOT_A_MESSAGE = (ValueError, TypeError, OverflowError, EOFError, IndexError, struct.error)


class MessageForm:
    """A message in all of its versions."""

    name: str

    @property
    def flexible_since(self) -> int:
        """The first flexible version."""
        raise NotImplementedError

    def functions(self, version: int) -> dict[str, Any]:
        """Return READERS and WRITERS, which have at least this version."""
        raise NotImplementedError

    def reader(self, version: int) -> Reader:
        """Return what reads the message at a position, and the position behind it."""
        reader: Reader = self.functions(version)["READERS"][version]
        return reader

    def writer(self, version: int) -> Writer:
        """Return what appends the message's bytes."""
        writer: Writer = self.functions(version)["WRITERS"][version]
        return writer

    def read(self, version: int, buffer: Buffer, position: int = 0) -> Any:  # noqa: ANN401
        """Read the message; whatever is wrong with the bytes is a MalformedFrame."""
        reader = self.reader(version)
        try:
            return reader(buffer, position)[0]
        except NOT_A_MESSAGE as error:
            raise MalformedFrame(f"no {self.name}: {type(error).__name__}: {error}") from error

    def write(self, version: int, message: object) -> bytes:
        """Return the message's bytes."""
        out = bytearray()
        self.writer(version)(out, message)
        return bytes(out)


class KafkaMessage(MessageForm):
    """One of Kafka's messages; its classes are attributes."""

    def __init__(self, name: str, kind: str) -> None:
        self.name = f"{name}_{kind}"
        self._source = (name, kind)
        self._module: ModuleType | None = None
        self._made: dict[int, dict[str, Any]] = {}

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a class
        value = getattr(self._loaded(), name)
        # The next look-up finds it without coming here.
        setattr(self, name, value)
        return value

    @property
    def api_key(self) -> int:
        """The key of the API."""
        key: int = self._loaded().API_KEY
        return key

    @property
    def flexible_since(self) -> int:
        """The first flexible version."""
        since: int = self._loaded().FLEXIBLE_SINCE
        return since

    def functions(self, version: int) -> dict[str, Any]:
        """Return READERS and WRITERS, which have at least this version."""
        names = vars(self._loaded())
        if "READERS" in names:
            return names
        if version not in self._made:
            self._made[version] = _made_functions(_schema(*self._source), version, names)
        return self._made[version]

    def _loaded(self) -> ModuleType:
        if self._module is None:
            try:
                self._module = import_module(f"{MADE}.{self.name}")
            except ModuleNotFoundError:
                # Threads that come together all take the one that is there first.
                made = _made_module(*self._source)
                self._module = _MODULES.setdefault(self.name, made)
        return self._module


class DeclaredMessage(MessageForm):
    """A message that a class of ours declares (`schema.message`)."""

    def __init__(self, cls: type[Any]) -> None:
        self.name = cls.__name__
        self._cls: Any = cls
        self._made: dict[int, dict[str, Any]] = {}

    @property
    def flexible_since(self) -> int:
        """The first flexible version."""
        since: int = self._cls.__flexible_since__
        return since

    def functions(self, version: int) -> dict[str, Any]:
        """Return READERS and WRITERS, which have at least this version."""
        if version not in self._made:
            names = classes_in(self._cls)
            self._made[version] = _made_functions(schema_of(self._cls), version, names)
        return self._made[version]


@cache
def kafka_message(name: str, kind: str) -> KafkaMessage:
    """Return the message of that snake-case name: a request, a response, or data of a record."""
    return KafkaMessage(name, kind)


@cache
def declared_message(cls: Hashable) -> DeclaredMessage:
    """Return the message that the class declares."""
    assert isinstance(cls, type)
    return DeclaredMessage(cls)


def read_message(cls: Any, version: int, buffer: Buffer, position: int = 0) -> Any:  # noqa: ANN401
    """Read a declared message; what follows it is left alone."""
    return declared_message(cls).read(version, buffer, position)


def write_message(message: object, version: int | None = None) -> bytes:
    """Return a declared message's bytes, in the version that its class is written in."""
    cls: Any = type(message)
    return declared_message(cls).write(cls.__version__ if version is None else version, message)


class Call:
    """An API at one version, for a client: its classes, its request written, its response read."""

    def __init__(self, name: str, version: int, response: MessageForm | None = None) -> None:
        self.version = version
        self.request: Any = kafka_message(name, "request")
        self.response: Any = kafka_message(name, "response") if response is None else response

    @property
    def key(self) -> int:
        """The API's key."""
        key: int = self.request.api_key
        return key

    def write(self, request: object) -> bytes:
        """Return the request's body."""
        body: bytes = self.request.write(self.version, request)
        return body

    def read(self, body: Buffer, position: int = 0) -> Any:  # noqa: ANN401 - a response
        """Read the response's body; whatever is wrong with it is a MalformedFrame."""
        return self.response.read(self.version, body, position)


# Making what was not built.


def _schema(name: str, kind: str) -> Schema:
    from strom.wire.kio_schema import schema_of_kio

    return schema_of_kio(name, kind)


def _made_module(name: str, kind: str) -> ModuleType:
    """Make the classes of a message."""
    from strom.wire.generator import class_source, head_source

    schema = _schema(name, kind)
    module = ModuleType(f"{MADE}.{name}_{kind}")
    title = f"{name} {kind}"
    exec(head_source(schema, title), vars(module))
    for each in schema.structs:
        exec(class_source(each), vars(module))
    return module


def _made_functions(schema: Schema, version: int, names: dict[str, Any]) -> dict[str, Any]:
    """Make the functions of one version; the names are the classes'."""
    from strom.wire.generator import functions_source, head_source

    made: dict[str, Any] = {}
    exec(head_source(schema, schema.message.name), made)
    made |= names
    exec(functions_source(schema, (version,)), made)
    return made
