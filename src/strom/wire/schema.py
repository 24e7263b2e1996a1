"""The schema of a message: its structs, and the fields of each in every version.

    Schema ── structs, nested ones first, the message itself last
      Struct ── layouts: version → the fields in the order of the wire
        Field ── name, Kafka's type, whether there are many, whether there can be none, tag, default

There are two sources of schemas: kio's classes, one for each version of Kafka's own messages
(`kio_schema`), and classes of our own that are declared here, for the records of logs:

    @message(api_key=2, written=3, newest=4, flexible_since=4)
    class GroupMetadataValue:
        protocol_type: str = of("string")
        state_timestamp_ms: int = of("int64", since=2, default=-1)
        members: tuple[Member, ...] = of("struct")

Either way one class has the fields of all versions: a field that a version lacks has its default.
`generator` makes readers and writers of a schema, `messages` finds them.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from typing import (
    Any,
    NamedTuple,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

STRUCT = "struct"
#: The first flexible version of a message that has none; the last version of a field that stays.
NEVER = 2**15
#: The api key of a struct that only occurs inside a message.
NESTED = -1

#: The default of each kind that the protocol gives to a field without a default of its own.
IMPLICIT = {
    **dict.fromkeys(("int8", "int16", "uint16", "int32", "uint32", "int64"), "0"),
    "bool": "False",
    "float64": "0.0",
    "string": "''",
    "bytes": "b''",
    "records": "b''",
    "uuid": "NO_ID",
    "error_code": "ErrorCode.NONE",
    "timedelta_i32": "timedelta(0)",
    "datetime_i64": "None",
}


class Field(NamedTuple):
    """One field in one version."""

    name: str
    kind: str
    #: The name of the struct, for fields of that kind.
    struct: str
    is_array: bool
    nullable: bool
    #: Whether an id in an array can be none, which is written as zeros.
    holds_none: bool
    tag: int | None
    #: A Python expression.
    default: str


class Struct(NamedTuple):
    """A message, or a struct inside one."""

    name: str
    layouts: dict[int, tuple[Field, ...]]

    def attributes(self) -> dict[str, Field]:
        """Return the fields of all versions, each as the newest version that has it."""
        found: dict[str, Field] = {}
        for version in sorted(self.layouts, reverse=True):
            for each in self.layouts[version]:
                found.setdefault(each.name, each)
        return found


class Schema(NamedTuple):
    """A message in all of its versions."""

    api_key: int
    flexible_since: int
    structs: tuple[Struct, ...]

    @property
    def message(self) -> Struct:
        """The message itself."""
        return self.structs[-1]

    def is_flexible(self, version: int) -> bool:
        """Return whether the version has compact lengths and tagged fields (KIP-482)."""
        return version >= self.flexible_since


def implicit_default(kind: str, struct: str, *, is_array: bool, nullable: bool) -> str:
    """Return the default that the protocol gives to a field that declares none."""
    if nullable:
        return "None"
    if is_array:
        return "()"
    return f"{struct}()" if kind == STRUCT else IMPLICIT[kind]


# Messages of our own.

Class = TypeVar("Class", bound=type)


def of(
    kind: str,
    *,
    since: int = 0,
    until: int = NEVER,
    tag: int | None = None,
    default: Any = MISSING,  # noqa: ANN401 - of the field's own type
) -> Any:  # noqa: ANN401 - as dataclasses.field
    """Declare a field by Kafka's type, the versions that have it, and its tag."""
    metadata = {"kind": kind, "since": since, "until": until, "tag": tag}
    return field(default=default, metadata=metadata)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(of,))
def message(
    *, api_key: int = NESTED, written: int = 0, newest: int | None = None, flexible_since: int = 0
) -> Callable[[Class], Class]:
    """Declare a class as a message: the version it is written in, the newest that is read."""

    def declare(cls: Class) -> Class:
        # Frozen to type checkers only: Python's own check makes the constructor five times slower.
        made: Any = dataclass(slots=True, kw_only=True, unsafe_hash=True)(cls)
        made.__api_key__ = api_key
        made.__version__ = written
        made.__newest__ = written if newest is None else newest
        made.__flexible_since__ = flexible_since
        declared: Class = made
        return declared

    return declare


def schema_of(cls: type[Any]) -> Schema:
    """Return the schema of a declared class."""
    newest: int = cls.__newest__
    structs: dict[str, Struct] = {}
    _collect(cls, range(newest + 1), structs)
    return Schema(cls.__api_key__, cls.__flexible_since__, tuple(structs.values()))


def classes_in(cls: type[Any]) -> dict[str, type[Any]]:
    """Return the declared class and those inside it, by name."""
    found = {cls.__name__: cls}
    for hint in get_type_hints(cls).values():
        inner = _element(_without_none(hint)[0])
        if hasattr(inner, "__flexible_since__"):
            found |= classes_in(inner)
    return found


def _collect(cls: type[Any], versions: range, structs: dict[str, Struct]) -> None:
    hints = get_type_hints(cls)
    declared = [(each, _declared(each, hints[each.name])) for each in fields(cls)]
    for each, read in declared:
        if read.kind == STRUCT and read.struct not in structs:
            _collect(_element(_without_none(hints[each.name])[0]), versions, structs)
    structs[cls.__name__] = Struct(
        cls.__name__,
        {
            version: tuple(
                read
                for each, read in declared
                if each.metadata["since"] <= version <= each.metadata["until"]
            )
            for version in versions
        },
    )


def _declared(each: Any, hint: Any) -> Field:  # noqa: ANN401 - a dataclass's field and its type
    kind = each.metadata["kind"]
    bare, nullable = _without_none(hint)
    is_array = get_origin(bare) is tuple
    inner, of_none = _without_none(_element(bare))
    struct = inner.__name__ if kind == STRUCT else ""
    default = (
        implicit_default(kind, struct, is_array=is_array, nullable=nullable)
        if each.default is MISSING
        else repr(each.default)
    )
    tag = each.metadata["tag"]
    return Field(each.name, kind, struct, is_array, nullable, of_none, tag, default)


def _element(hint: Any) -> Any:  # noqa: ANN401 - types are values of any type
    return get_args(hint)[0] if get_origin(hint) is tuple else hint


def _without_none(hint: Any) -> tuple[Any, bool]:  # noqa: ANN401 - types are values of any type
    """Return the type without None, and whether None was in it."""
    if get_origin(hint) in (Union, types.UnionType):
        kinds = [each for each in get_args(hint) if each is not types.NoneType]
        return kinds[0], True
    return hint, False
