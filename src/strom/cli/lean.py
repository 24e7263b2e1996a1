"""Commands whose options are plain data, so that they can be read without importing typer.

`parse` accepts what is plainly right and gives up (None) at the first thing that is not: the
caller then hands the whole command line to typer, which knows the same options and explains.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

PORT_MAX = 65_535

Value = str | int | bool | list[str] | None
Values = Mapping[str, Value]


class Option(NamedTuple):
    """One option: `kind` is str, int (a port), bool (a flag) or list (may be repeated)."""

    name: str
    flags: tuple[str, ...]
    kind: type[str] | type[int] | type[bool] | type[list[str]]
    default: Value
    help: str
    metavar: str | None = None
    #: The value is typed by hand and has no default that would work.
    required: bool = False


class Command(NamedTuple):
    """A command: what it says about itself, its options, and what runs it."""

    help: str
    examples: tuple[str, ...]
    options: tuple[Option, ...]
    run: Callable[[Values], int]


def parse(options: Sequence[Option], arguments: Sequence[str]) -> dict[str, Value] | None:
    """Read the arguments; None if anything about them needs explaining."""
    by_flag = {flag: option for option in options for flag in option.flags}
    values = {option.name: [] if option.kind is list else option.default for option in options}
    given: set[str] = set()
    words = iter(arguments)
    for word in words:
        flag, has_value, text = word.partition("=")
        option = by_flag.get(flag)
        if option is None or (has_value and option.kind is bool):
            return None
        value = True if option.kind is bool else text if has_value else next(words, None)
        if not store(values, option, value):
            return None
        given.add(option.name)
    missing = [option for option in options if option.required and option.name not in given]
    return None if missing else values


def store(values: dict[str, Value], option: Option, value: str | bool | None) -> bool:
    """Keep one value; False if it is not of the option's kind."""
    if value is None:
        return False
    if option.kind is int:
        if not str(value).isdecimal() or int(value) > PORT_MAX:
            return False
        values[option.name] = int(value)
    elif option.kind is list:
        several = values[option.name]
        assert isinstance(several, list)
        several.append(str(value))
    else:
        values[option.name] = value
    return True
