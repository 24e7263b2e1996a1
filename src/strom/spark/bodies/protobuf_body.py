"""Values that are Protobuf: one message, by its name in a set of descriptors.

The set is what `protoc --include_imports --descriptor_set_out=rides.desc rides.proto` writes; the
types that Protobuf itself brings need not be in it. Each body has its descriptors to itself, so two
versions of a message do not meet.
"""

import difflib
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from strom.spark.bodies.body import (
    Kind,
    Reader,
    SchemaError,
    UnreadableError,
    UnwritableError,
    Writer,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from google.protobuf.descriptor import FileDescriptor
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message import Message

    from strom.spark.bodies.protobuf_schema import MessageLayout

KNOWN_FILES = ("any", "duration", "empty", "field_mask", "struct", "timestamp", "wrappers")


@dataclass(frozen=True, slots=True)
class ProtobufBody:
    """Protobuf by a FileDescriptorSet and the full name of a message."""

    descriptors: bytes
    message: str

    def __post_init__(self) -> None:
        """Refuse a set without the message, or a message of which no columns can be made."""
        _found(self)

    @property
    def label(self) -> str:
        """Return what a value is, for people."""
        return f"Protobuf of {self.message}"

    def kind(self) -> Kind:
        """Return the columns, as a struct."""
        return _found(self)[1].kind

    def reader(self) -> Reader:
        """Return what reads one value."""
        from google.protobuf.message import DecodeError

        message_class, layout = _found(self)

        def read(value: bytes) -> dict[str, Any]:
            try:
                message = message_class.FromString(value)
            except DecodeError as error:
                raise UnreadableError(_without_class(str(error))) from None
            if not message.IsInitialized():
                missing = ", ".join(message.FindInitializationErrors())
                raise UnreadableError(f"required fields are missing: {missing}")
            try:
                return layout.read(message)
            except UnicodeDecodeError as error:
                raise UnreadableError(f"a string is no UTF-8: {error}") from None

        return read

    def writer(self) -> Writer:
        """Return what writes one row."""
        from google.protobuf.json_format import ParseError
        from google.protobuf.message import EncodeError

        message_class, layout = _found(self)

        def write(row: dict[str, Any]) -> bytes:
            message = message_class()
            try:
                layout.fill(message, row)
                written: bytes = message.SerializeToString(deterministic=True)
            except (EncodeError, ParseError, TypeError, ValueError) as error:
                raise UnwritableError(str(error)) from None
            return written

        return write


def descriptors_of(message: "type[Message]") -> bytes:
    """Return the set of descriptors of a class that protoc has generated."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    files: dict[str, bytes] = {}

    def add(file: "FileDescriptor") -> None:
        if file.name not in files:
            for each in file.dependencies:
                add(each)
            files[file.name] = file.serialized_pb

    add(message.DESCRIPTOR.file)
    found = FileDescriptorSet()
    for each in files.values():
        found.file.add().ParseFromString(each)
    return bytes(found.SerializeToString())


def _without_class(text: str) -> str:
    """Return what is wrong without the class that could not read it, which is told anyway."""
    return text.rpartition("': ")[2]


@lru_cache(maxsize=64)
def _found(body: ProtobufBody) -> "tuple[type[Message], MessageLayout]":
    """Return the class of the message and its columns."""
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
        from google.protobuf.message import DecodeError
    except ImportError as error:
        raise SchemaError(
            f"Protobuf needs protobuf: pip install 'strom[formats]' ({error})"
        ) from None
    from strom.spark.bodies.protobuf_schema import MessageLayout

    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(body.descriptors).file
    except DecodeError:
        raise SchemaError(
            "this is no set of descriptors; protoc --include_imports --descriptor_set_out "
            "writes one"
        ) from None
    pool = descriptor_pool.DescriptorPool()
    _fill(pool, {each.name: each for each in files})
    try:
        descriptor = pool.FindMessageTypeByName(body.message)
    except KeyError:
        raise SchemaError(_unknown(body.message, files)) from None
    return message_factory.GetMessageClass(descriptor), MessageLayout(descriptor)


def _fill(pool: "DescriptorPool", files: "dict[str, FileDescriptorProto]") -> None:
    """Add the files, each after those that it imports."""
    added: set[str] = set()

    def add(name: str, needed_by: str) -> None:
        if name in added:
            return
        added.add(name)
        file = files.get(name)
        serialized = _known_file(name, needed_by) if file is None else file.SerializeToString()
        for each in () if file is None else file.dependency:
            add(each, name)
        try:
            pool.AddSerializedFile(serialized)
        except TypeError as error:
            raise SchemaError(f"{name} is no file of descriptors: {error}") from None

    for name in files:
        add(name, name)


def _known_file(name: str, needed_by: str) -> bytes:
    """Return a file that Protobuf itself brings."""
    import importlib

    stem = name.removeprefix("google/protobuf/").removesuffix(".proto")
    if stem not in KNOWN_FILES:
        raise SchemaError(
            f"{needed_by} imports {name}, which is not in the set: protoc --include_imports"
        )
    found: bytes = importlib.import_module(f"google.protobuf.{stem}_pb2").DESCRIPTOR.serialized_pb
    return found


def _unknown(message: str, files: "Iterable[FileDescriptorProto]") -> str:
    names = sorted(
        f"{file.package}.{each.name}".lstrip(".") for file in files for each in file.message_type
    )
    close = difflib.get_close_matches(message, names, 1)
    hint = f"did you mean '{close[0]}'?" if close else f"there is {', '.join(names) or 'none'}"
    return f"the descriptors have no message '{message}': {hint}"
