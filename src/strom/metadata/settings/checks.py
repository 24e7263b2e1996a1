"""Which values are valid, in Kafka's words when they are not."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Final, NamedTuple

from strom.metadata.settings.definition import LIST, Check, Value, invalid, is_port, text_of

REPLICAS_FORM: Final = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
# Patterns that few brokers need are compiled when they are needed.
PAIR_OR_NOTHING: Final = "([0-9]+:[0-9]+)?"
#: A time span as Java reads it, none of it negative: a number at least, and one behind the T.
DURATION: Final = (
    r"(?i)\+?P(?=.)(?:\+?[0-9]+D)?"
    r"(?:T(?=.)(?:\+?[0-9]+H)?(?:\+?[0-9]+M)?(?:\+?[0-9]+(?:[.,][0-9]{0,9})?S)?)?"
)


class Range(NamedTuple):
    """Numbers from a bound on, and perhaps up to another."""

    low: float
    high: float | None

    def problem(self, name: str, value: Value) -> str | None:
        """Say which bound is crossed."""
        assert isinstance(value, int | float)
        if value < self.low:
            return invalid(name, text_of(value), f"Value must be at least {self.low}")
        if self.high is not None and value > self.high:
            return invalid(name, text_of(value), f"Value must be no more than {self.high}")
        return None

    def __str__(self) -> str:
        return f"[{self.low},...{'' if self.high is None else f',{self.high}'}]"


class GzipLevel:
    """1 to 9, or -1 for the library's choice."""

    def problem(self, name: str, value: Value) -> str | None:
        """Refuse every other level."""
        if value == -1 or (isinstance(value, int) and 1 <= value <= 9):
            return None
        return invalid(name, value, "Value must be between 1 and 9 or equal to -1")

    def __str__(self) -> str:
        return "[1,...,9] or -1"


class OneOf(NamedTuple):
    """One of a few words."""

    words: tuple[str, ...]
    ignores_case: bool = False

    def problem(self, name: str, value: Value) -> str | None:
        """Name the words that would do."""
        if value in self.words or (self.ignores_case and str(value).upper() in self.words):
            return None
        how = " (case insensitive)" if self.ignores_case else ""
        return invalid(name, value, f"String must be one of{how}: {', '.join(self.words)}")

    def __str__(self) -> str:
        return f"{'(case insensitive) ' if self.ignores_case else ''}[{', '.join(self.words)}]"


class Listed(NamedTuple):
    """A list without empty items; perhaps of a few words, perhaps never empty."""

    words: tuple[str, ...]
    may_be_empty: bool

    def once_each(self, value: Value) -> Value:
        """Return the list without its repetitions."""
        assert isinstance(value, tuple)
        return tuple(dict.fromkeys(value))

    def problem(self, name: str, value: Value) -> str | None:
        """Find the first thing wrong with the list."""
        assert isinstance(value, tuple)
        if not value and not self.may_be_empty:
            wanted = f"[{', '.join(self.words)}]" if self.words else "any non-empty value"
            return f"Configuration '{name}' must not be empty. Valid values include: {wanted}"
        for item in value:
            if not item:
                return f"Configuration '{name}' values must not be empty."
            if self.words and item not in self.words:
                return OneOf(self.words).problem(name, item)
        return None

    def __str__(self) -> str:
        return f"[{', '.join(self.words)}]" if self.words else ""


class Filled:
    """A text that is not empty."""

    def problem(self, name: str, value: Value) -> str | None:
        """Refuse the empty text."""
        return None if value else invalid(name, value, "String must be non-empty")

    def __str__(self) -> str:
        return "non-empty string"


class Replicas:
    """`*`, or pairs of partition and broker."""

    def problem(self, name: str, value: Value) -> str | None:
        """Refuse what is neither."""
        assert isinstance(value, tuple)
        if value == ("*",) or all(re.fullmatch(PAIR_OR_NOTHING, item) for item in value):
            return None
        shown = f"[{', '.join(value)}]"
        wanted = f"a list of replicas in the following format: {REPLICAS_FORM}"
        return invalid(name, shown, f"{name} must be the literal '*' or {wanted}")

    def __str__(self) -> str:
        return REPLICAS_FORM


class Voters:
    """Controllers as id@host:port."""

    def problem(self, name: str, value: Value) -> str | None:
        """Refuse an entry of another form."""
        assert isinstance(value, tuple)
        for item in value:
            node, at, address = item.partition("@")
            if not (at and node.isdecimal() and is_address(address)):
                form = "Each entry should be in the form `{id}@{host}:{port}`."
                return f"Invalid configuration value for {name}. {form}"
        return None

    def __str__(self) -> str:
        return "non-empty list"


class Addresses:
    """Servers as host:port."""

    def problem(self, name: str, value: Value) -> str | None:
        """Refuse an entry of another form."""
        assert isinstance(value, tuple)
        for item in value:
            if not is_address(item):
                form = 'Each entry should be in the form "{host}:{port}"'
                return f"Failed to parse host name from {item} for the configuration {name}. {form}"
        return None

    def __str__(self) -> str:
        return "non-empty list"


def is_address(text: str) -> bool:
    """Whether the text is a host and a port."""
    host, colon, port = text.rpartition(":")
    return bool(colon and host) and is_port(port)


class OffsetReset:
    """Where a share group starts: earliest, latest, or a time ago."""

    def problem(self, name: str, value: Value) -> str | None:
        """Refuse every other word."""
        text = str(value)
        if text in ("earliest", "latest"):
            return None
        way, _, span = text.partition(":")
        if way == "by_duration" and re.fullmatch(DURATION, span):
            return None
        wanted = "either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
        why = f"Invalid value `{text}` for configuration {name}. The value must be {wanted}"
        return invalid(name, text, why)

    def __str__(self) -> str:
        return "[latest, earliest, by_duration:PnDTnHnMn.nS]"


#: The checks that the table has a name for.
NAMED: Final[Mapping[str, Check]] = {
    "addresses": Addresses(),
    "gzip-level": GzipLevel(),
    "offset-reset": OffsetReset(),
    "replicas": Replicas(),
    "voters": Voters(),
}

#: What the table says of the words that follow, or of the text.
NOT_EMPTY: Final = "(not empty)"
ANY_CASE: Final = "(case insensitive)"
TO: Final = ",..."


@cache
def check_of(kind: int, valid: str) -> Check | None:
    """Return the check that the table means by its valid values of a type; None takes all."""
    if valid in NAMED:
        return NAMED[valid]
    may_be_empty, ignores_case = not valid.startswith(NOT_EMPTY), valid.startswith(ANY_CASE)
    bracketed = valid.removeprefix(NOT_EMPTY).removeprefix(ANY_CASE).strip()
    if bracketed and not (bracketed.startswith("[") and bracketed.endswith("]")):
        raise ValueError(f"there is no check {valid!r}")
    inner = bracketed[1:-1]
    if TO in inner:
        low, _, high = inner.partition(TO)
        return Range(number(low), number(high.removeprefix(",")) if high else None)
    words = tuple(inner.split(", ")) if inner else ()
    if kind == LIST:
        return Listed(words, may_be_empty)
    if words:
        return OneOf(words, ignores_case)
    return None if may_be_empty else Filled()


def number(text: str) -> float:
    """Return a bound as it is written: whole, or with a fraction."""
    return float(text) if "." in text else int(text)
