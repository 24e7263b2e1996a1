"""Kafka's messages in kio's classes, the oracle of ours: any values, and their bytes."""

import pkgutil
import random
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import import_module
from io import BytesIO
from types import UnionType
from typing import get_args, get_origin
from uuid import UUID

import kio.schema
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.serial import entity_reader, entity_writer

from strom.wire.errors import ErrorCode

KINDS = ("request", "response", "data")
EPOCH = datetime.fromtimestamp(0, UTC)
#: Bits of each number.
BITS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}


@cache
def kio_class(name, version, kind):
    """kio's class of a message: the last one of its module; None if there is no such message."""
    try:
        module = import_module(f"kio.schema.{name}.v{version}.{kind}")
    except ModuleNotFoundError:
        return None
    here = [each for each in vars(module).values() if is_dataclass(each)]
    return [each for each in here if each.__module__ == module.__name__][-1]


def every_message():
    """Name, kind and versions of every message that kio knows."""
    for package in pkgutil.iter_modules(kio.schema.__path__):
        if not package.ispkg:
            continue
        inside = import_module(f"kio.schema.{package.name}").__path__
        versions = sorted(int(each.name[1:]) for each in pkgutil.iter_modules(inside))
        for kind in KINDS:
            known = [each for each in versions if kio_class(package.name, each, kind)]
            if known:
                yield package.name, kind, known


def bytes_of(message):
    """The bytes that kio writes."""
    with BytesIO() as out:
        entity_writer(type(message))(out, message)
        return out.getvalue()


def read_by_kio(name, version, kind, data):
    """What kio reads, to the last byte."""
    message, size = entity_reader(kio_class(name, version, kind))(bytes(data), 0)
    assert size == len(data)
    return message


def make(entity, **values):
    """A message of kio's, of the fields that its version has; the others have their defaults."""
    names = {each.name for each in fields(entity)}
    return entity(**{name: value for name, value in values.items() if name in names})


def class_in(entity, name):
    """The class of what a field holds."""
    (type_,) = [each.type for each in fields(entity) if each.name == name]
    while not is_dataclass(type_):
        type_ = next(each for each in get_args(type_) if each is not type(None))
    return type_


def in_ours(message, form):
    """The message in our classes."""
    if is_dataclass(message):
        values = {each.name: in_ours(getattr(message, each.name), form) for each in fields(message)}
        for each in fields(message):
            if each.metadata.get("kafka_type") == "timedelta_i64":
                values[each.name] = round(values[each.name].total_seconds() * 1000)
        return getattr(form, type(message).__name__)(**values)
    if isinstance(message, tuple):
        return tuple(in_ours(each, form) for each in message)
    return ErrorCode(message.value) if isinstance(message, KioErrorCode) else message


class Values:
    """Values for the fields of messages: any, or as little as there can be."""

    def __init__(self, seed=None):
        self._random = None if seed is None else random.Random(seed)

    def message(self, entity):
        """A message of the class."""
        return entity(**{each.name: self._field(each) for each in fields(entity)})

    def _field(self, field):
        declared = field.type
        if isinstance(declared, UnionType):
            # kio cannot write a tagged field that is none, unless that is its default.
            can_be_none = "tag" not in field.metadata or field.default is None
            if can_be_none and (self._random is None or self._random.random() < 0.3):
                return None
            declared = next(each for each in get_args(declared) if each is not type(None))
        kind = field.metadata.get("kafka_type")
        if get_origin(declared) is not tuple:
            return self._value(kind, declared)
        count = 0 if self._random is None else self._random.choice((0, 1, 1, 2, 3))
        return tuple(self._value(kind, get_args(declared)[0]) for _ in range(count))

    def _value(self, kind, declared):
        if kind is None:
            return self.message(declared)
        if isinstance(declared, UnionType):
            declared = get_args(declared)[0]
        if self._random is None:
            return EMPTY.get(kind, 0)
        return self._any(kind)

    def _any(self, kind):
        chance = self._random
        if kind in BITS:
            bits = chance.choice((2, BITS[kind]))
            return chance.randint(-(2**bits), 2**bits - 1)
        return {
            "bool": lambda: chance.random() < 0.5,
            "uint16": lambda: chance.randint(0, 2**16 - 1),
            "float64": chance.random,
            "string": lambda: chance.choice(("", "t", "flight", "ü" * 70, "x" * 200)),
            "bytes": lambda: chance.randbytes(chance.choice((0, 3, 200))),
            "records": lambda: chance.randbytes(chance.choice((0, 3, 200))),
            "uuid": lambda: UUID(int=chance.randint(1, 2**128 - 1)),
            "error_code": lambda: chance.choice(list(KioErrorCode)),
            "timedelta_i32": lambda: timedelta(milliseconds=chance.randint(-1, 2**31 - 1)),
            "timedelta_i64": lambda: timedelta(milliseconds=chance.randint(-1, 2**40)),
            "datetime_i64": lambda: EPOCH + timedelta(milliseconds=chance.randint(0, 2**41)),
        }[kind]()


EMPTY = {
    "bool": False,
    "float64": 0.0,
    "string": "",
    "bytes": b"",
    "records": b"",
    "uuid": UUID(int=1),
    "error_code": KioErrorCode.none,
    "timedelta_i32": timedelta(0),
    "timedelta_i64": timedelta(0),
    "datetime_i64": EPOCH,
}
