"""What tests of hand-written codecs share: kio's classes of each version, and values for them."""

import io
from dataclasses import MISSING, fields
from typing import get_args, get_type_hints

from hypothesis import settings
from hypothesis import strategies as some
from kio.serial import entity_writer

from tests.effort import examples

NUMBERS = some.integers(-1, 2**31 - 1)
TEXTS = some.text(max_size=20)
OPTIONAL = some.none() | TEXTS
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
