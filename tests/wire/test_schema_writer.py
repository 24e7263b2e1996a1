"""Messages of kio's classes are written as kio writes them, byte for byte."""

import pkgutil
from dataclasses import fields
from importlib import import_module
from io import BytesIO
from types import UnionType

import kio.schema
import pytest
from kio.schema.errors import ErrorCode
from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.serial import entity_writer

from strom.wire.schema_writer import schema_writer
from strom.wire.translate import default_of
from tests.wire.test_guard import sample


def message_classes():
    """Every request and response that kio knows, in its oldest and its newest version."""
    for api in pkgutil.iter_modules(kio.schema.__path__):
        if not api.ispkg:
            continue
        package = import_module(f"kio.schema.{api.name}")
        versions = {int(each.name[1:]) for each in pkgutil.iter_modules(package.__path__)}
        camel = "".join(word.capitalize() for word in api.name.split("_"))
        for version in sorted({min(versions), max(versions)}):
            for kind in ("request", "response"):
                try:
                    module = import_module(f"kio.schema.{api.name}.v{version}.{kind}")
                except ModuleNotFoundError:
                    continue
                yield getattr(module, camel + kind.capitalize())


def bare(entity):
    """A message that has nothing where it may: no elements, no tagged fields, None."""
    values = {}
    for each in fields(entity):
        if isinstance(each.type, UnionType):
            values[each.name] = each.default if "tag" in each.metadata else None
        elif each.metadata.get("kafka_type") == "error_code":
            values[each.name] = ErrorCode.none
        else:
            values[each.name] = default_of(each, each.type)
    return entity(**values)


def written_by_kio(message):
    out = BytesIO()
    entity_writer(type(message))(out, message)
    return out.getvalue()


def test_every_message_is_written_as_kio_writes_it():
    count = 0
    for entity in message_classes():
        write = schema_writer(entity)
        for message in (sample(entity), bare(entity)):
            assert write(message) == written_by_kio(message), entity
            count += 1
    assert count > 300


def test_what_must_be_there_is_asked_for():
    request = bare(HeartbeatRequest)
    object.__setattr__(request, "member_id", None)
    with pytest.raises(TypeError, match="must be there"):
        schema_writer(HeartbeatRequest)(request)
