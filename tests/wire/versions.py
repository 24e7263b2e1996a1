"""What tests of hand-written codecs share: kio's classes of each version, and values for them."""

import io
from dataclasses import MISSING, fields
from datetime import timedelta
from typing import get_args, get_type_hints

from hypothesis import settings
from hypothesis import strategies as some
from kio.serial import entity_reader, entity_writer

from strom.wire.codec import load_class
from tests.effort import examples

NUMBERS = some.integers(-1, 2**31 - 1)
TEXTS = some.text(max_size=20)
OPTIONAL = some.none() | TEXTS
THROTTLE = timedelta(milliseconds=42)
#: Of each version: they differ in few fields, and the others are tried with every one of them.
in_short = settings(max_examples=examples(30))


def few(elements, min_size=0):
    """None, one and more of them are all that there is to tell apart."""
    return some.lists(elements, min_size=min_size, max_size=4)


def class_in(entity, name):
    """The class of what an array holds."""
    hint = get_type_hints(entity)[name]
    while not isinstance(hint, type):
        hint = next(each for each in get_args(hint) if each is not type(None))
    return hint


def make(entity, **values):
    """An entity of the fields that its version has."""
    names = {each.name for each in fields(entity)}
    missing = [
        each.name for each in fields(entity) if each.default is MISSING and each.name not in values
    ]
    assert not missing, missing
    return entity(**{name: value for name, value in values.items() if name in names})


def written(entity):
    with io.BytesIO() as out:
        entity_writer(type(entity))(out, entity)
        return out.getvalue()


def request_of(module, version, **values):
    """What the module reads of a request that kio has written."""
    name = module.__name__.rpartition(".")[2]
    request = make(load_class(name, version, "request"), **values)
    return module.read_request(memoryview(written(request)), 0, version)


def read_in_kio(module, version, answer):
    """What kio reads of an answer that the module has written."""
    name = module.__name__.rpartition(".")[2]
    data = module.write_response(answer, version)
    read, size = entity_reader(load_class(name, version, "response"))(data, 0)
    assert size == len(data)
    assert getattr(read, "throttle_time", THROTTLE) == THROTTLE
    assert getattr(read, "error_code", answer.error_code) == answer.error_code
    return read
