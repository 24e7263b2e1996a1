"""How a metadata record is declared: as an entity of kio, which then reads and writes it.

A class gives the newest version's fields; a field that came later says `since`. The class of an
older version, which only reading needs, is made from the newest by leaving out what came
later: what an old record lacks has the default of the new one.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, make_dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

from kio.static.constants import EntityType

from strom.wire.lazy import lazy

if TYPE_CHECKING:
    from kio import serial
else:
    serial = lazy("kio.serial")

#: The api key of what only occurs inside a record.
NESTED = -1

Class = TypeVar("Class", bound=type)
Reader = Callable[[bytes, int], tuple[Any, int]]

#: Made when first needed: making one takes longer than a thousand uses.
_READERS: dict[tuple[type, int], Reader] = {}
_WRITERS: dict[type, Callable[[BytesIO, Any], None]] = {}


def kafka(kind: str, *, tag: int | None = None, since: int = 0) -> dict[str, object]:
    """Describe a field as Kafka's schema does: its type, its tag, its first version."""
    described: dict[str, object] = {"kafka_type": kind, "since": since}
    if tag is not None:
        described["tag"] = tag
    return described


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
def entity(*, api_key: int = NESTED, version: int = 0) -> Callable[[Class], Class]:
    """Declare a class as an entity of kio (every metadata record is flexible from version 0)."""

    def declare(cls: Class) -> Class:
        made: Any = dataclass(frozen=True, slots=True, kw_only=True)(cls)
        declared: Class = _declare(made, api_key, version)
        return declared

    return declare


def _declare(cls: Class, api_key: int, version: int) -> Class:
    marks: Any = cls
    marks.__type__ = EntityType.nested if api_key == NESTED else EntityType.data
    marks.__version__ = version
    marks.__flexible__ = True
    marks.__api_key__ = api_key
    return cls


def reader(cls: type[Any], version: int) -> Reader:
    """Return what reads that version of a record, at a position, as the newest one's class."""
    found = _READERS.get((cls, version))
    if found is None:
        found = _READERS[cls, version] = _make_reader(cls, version)
    return found


def _make_reader(cls: type[Any], version: int) -> Reader:
    if version == cls.__version__:
        return serial.entity_reader(cls)
    old = _of_version(cls, version)
    names = [each.name for each in fields(old)]
    read_old = serial.entity_reader(old)

    def read(buffer: bytes, position: int) -> tuple[Any, int]:
        entity, end = read_old(buffer, position)
        return cls(**{name: getattr(entity, name) for name in names}), end

    return read


def write(entity: object) -> bytes:
    """Return the entity's bytes, in its newest version."""
    target = BytesIO()
    cls: type[Any] = type(entity)
    writer = _WRITERS.get(cls)
    if writer is None:
        writer = _WRITERS[cls] = serial.entity_writer(cls)
    writer(target, entity)
    return target.getvalue()


def _of_version(cls: type[Any], version: int) -> type[Any]:
    kept = [
        (each.name, each.type, field(default=each.default, metadata=each.metadata))
        for each in fields(cls)
        if each.metadata.get("since", 0) <= version
    ]
    old = make_dataclass(f"{cls.__name__}V{version}", kept, frozen=True, slots=True, kw_only=True)
    return _declare(old, cls.__api_key__, version)
