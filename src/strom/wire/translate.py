"""One handler for every version of a message: fill in what an old version lacks, drop what it
does not know.

kio has a class per version, and a field keeps its name through the versions. So a request of
any version becomes the newest one by taking the fields that are there and the protocol's
default for the others, and the newest response becomes an older one by leaving fields out.
What this cannot express (a field whose meaning changed) stands in the API's own module.
"""

from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints
from uuid import UUID

Message = TypeVar("Message")
Convert = Callable[[Any], Any]


@cache
def translator(source: type, target: type[Message]) -> Callable[[Any], Message]:
    """Return a function that makes a target of a source, its other-version sibling."""
    if source is target:
        return _same
    source_types = get_type_hints(source)
    target_types = get_type_hints(target)
    taken: list[tuple[str, Convert | None]] = []
    constants: dict[str, Any] = {}
    for field in fields(target):  # type: ignore[arg-type]
        if field.name in source_types:
            convert = _converter(source_types[field.name], target_types[field.name])
            taken.append((field.name, convert))
        else:
            constants[field.name] = default_of(field, target_types[field.name])

    def translate(message: Any) -> Message:
        values = dict(constants)
        for name, convert in taken:
            value = getattr(message, name)
            values[name] = value if convert is None else convert(value)
        return target(**values)

    return translate


def _same(message: Any) -> Any:
    return message


def _converter(source: Any, target: Any) -> Convert | None:
    """Return what turns a field's value into its sibling's, or None where it is the same."""
    inner_source, inner_target = _entity_in(source), _entity_in(target)
    if inner_source is None or inner_target is None:
        return _none_to_default(source, target)
    translate = translator(inner_source, inner_target)

    def convert(value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, tuple):
            return tuple([translate(each) for each in value])
        return translate(value)

    return convert


def _none_to_default(source: Any, target: Any) -> Convert | None:
    """A value that may be absent in the newer version only is the type's empty one in the older."""
    if not _is_optional(source) or _is_optional(target):
        return None
    empty = _empty(target)
    return lambda value: empty if value is None else value


def _entity_in(annotation: Any) -> type | None:
    """Return the message class that the annotation is, or is a tuple or an optional of."""
    if isinstance(annotation, type) and is_dataclass(annotation):
        return annotation
    for argument in get_args(annotation):
        entity = _entity_in(argument)
        if entity is not None:
            return entity
    return None


def _is_optional(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, UnionType) and type(None) in get_args(annotation)


def default_of(field: "Field[Any]", annotation: Any) -> Any:
    """Return what the protocol says a field is when the message does not carry it."""
    if field.default is not MISSING:
        return field.default
    if _is_optional(annotation):
        return None
    return _empty(annotation)


def _empty(annotation: Any) -> Any:
    if get_origin(annotation) is tuple:
        return ()
    if is_dataclass(annotation):
        hints = get_type_hints(annotation)
        values = {each.name: default_of(each, hints[each.name]) for each in fields(annotation)}
        return annotation(**values)  # type: ignore[operator]
    for kind, empty in EMPTY:
        if issubclass(annotation, kind):
            return empty
    raise AssertionError(f"no empty value for {annotation}")


EMPTY: tuple[tuple[type, object], ...] = (
    (bool, False),
    (int, 0),
    (float, 0.0),
    (str, ""),
    (bytes, b""),
    (UUID, UUID(int=0)),
    (timedelta, timedelta(0)),
    (datetime, datetime.fromtimestamp(0, UTC)),
)
