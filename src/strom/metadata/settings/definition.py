"""What a setting is: its name, type, default, valid values, and what Strom does with it.

Names, types, defaults, ranges and the texts of refusals are Kafka 4.3's, so that a client that
reads an error or a description cannot tell the difference. Values are parsed once and kept as
plain Python values; LIST is a tuple, PASSWORD and CLASS are strings.
"""

from math import isinf, isnan
from typing import Final, NamedTuple, Protocol, runtime_checkable

Value = bool | int | float | str | tuple[str, ...] | None

# The codes of types are those of the DescribeConfigs response.
UNKNOWN: Final = 0
BOOLEAN: Final = 1
STRING: Final = 2
INT: Final = 3
SHORT: Final = 4
LONG: Final = 5
DOUBLE: Final = 6
LIST: Final = 7
CLASS: Final = 8
PASSWORD: Final = 9

TYPE_NAMES: Final = (
    "UNKNOWN BOOLEAN STRING INT SHORT LONG DOUBLE LIST CLASS PASSWORD".split()  # noqa: SIM905
)
BITS: Final = {INT: 32, SHORT: 16, LONG: 64}

#: What Java trims; Python would also take away the spaces of other scripts, which Kafka keeps.
BLANKS: Final = "".join(map(chr, range(ord(" ") + 1)))
#: And what it takes for blank between the entries of a list.
BLANKS_BETWEEN: Final = " \t\n\v\f\r"
DOUBLE_SIGNS: Final = frozenset("0123456789+-.e")

# When a change takes effect: after a restart, at once for one broker, or at once for all.
READ_ONLY: Final = "read-only"
PER_BROKER: Final = "per-broker"
CLUSTER_WIDE: Final = "cluster-wide"

#: What is hidden, and does not count, until somebody sets it at run time.
RUN_TIME: Final = "run-time"

#: In place of the reason why a setting is accepted but not used.
USED: Final = ""

PORT_MAX: Final = 65_535


class SettingsError(Exception):
    """Settings that nothing can be started with; the message is one line for the user."""


class Check(Protocol):
    """Tells valid values from others."""

    def problem(self, name: str, value: Value) -> str | None:
        """Say what is wrong with the value, in the whole sentence that the user gets."""


@runtime_checkable
class Unrepeated(Check, Protocol):
    """A check of lists in which what is there twice counts once."""

    def once_each(self, value: Value) -> Value:
        """Return the list without its repetitions."""


class Setting(NamedTuple):
    """The definition of one setting."""

    name: str
    type: int
    default: Value
    check: Check | None
    importance: str
    mode: str
    #: The broker's setting that stands in for a topic's or a group's that is not given; or empty.
    stand_in: str
    #: "internal": described only where it was given; RUN_TIME; or empty.
    hidden: str
    #: Why the broker does well without it; USED if it does not.
    accepted: str
    doc: str

    @property
    def sensitive(self) -> bool:
        """Whether the value must never be shown."""
        return self.type == PASSWORD

    def read(self, text: str) -> Value:
        """Parse and check a value; raise ValueError with Kafka's words if it will not do."""
        value = parse(self.name, self.type, text)
        if isinstance(self.check, Unrepeated):
            value = self.check.once_each(value)
        problem = None if self.check is None else self.check.problem(self.name, value)
        if problem:
            raise ValueError(problem)
        return value

    def show(self, value: Value) -> str | None:
        """Write a value as Kafka describes it."""
        return None if value is None else text_of(value)


def parse(name: str, kind: int, text: str) -> Value:
    """Read a value of the type; raise ValueError with Kafka's words if it is none."""
    trimmed = text.strip(BLANKS)
    if kind in BITS:
        return parse_whole(name, kind, text)
    if kind == BOOLEAN:
        if trimmed.lower() not in ("true", "false"):
            raise ValueError(invalid(name, text, "Expected value to be either true or false"))
        return trimmed.lower() == "true"
    if kind == DOUBLE:
        return parse_double(name, text)
    if kind == LIST:
        return tuple(item.strip(BLANKS_BETWEEN) for item in trimmed.split(",")) if trimmed else ()
    return trimmed


def parse_whole(name: str, kind: int, text: str) -> int:
    """Read a whole number that fits the type."""
    number = whole(text.strip(BLANKS), BITS[kind])
    if number is None:
        raise ValueError(invalid(name, text, f"Not a number of type {TYPE_NAMES[kind]}"))
    return number


def whole(text: str, bits: int = 32) -> int | None:
    """Read a whole number; None for what is none, or has more bits than that."""
    half = 1 << (bits - 1)
    # int() alone would take the underscores of Python's own literals.
    if not text.removeprefix("-").removeprefix("+").isdecimal():
        return None
    try:
        number = int(text)
    except ValueError:
        # Of thousands of digits, or with two signs.
        return None
    return number if -half <= number < half else None


def is_port(text: str) -> bool:
    """Whether the text is the number of a port."""
    return text.isdecimal() and whole(text) in range(PORT_MAX + 1)


def parse_double(name: str, text: str) -> float:
    """Read a number with a fraction."""
    digits = text.strip(BLANKS)
    if digits[-1:] in ("d", "D", "f", "F") and digits[-2:-1] in DOUBLE_SIGNS:
        # Java's literals say how long they are.
        digits = digits[:-1]
    try:
        number = float(digits)
        # float() alone would take underscores and the words inf and nan in any case.
        if digits.lstrip("+-") in ("NaN", "Infinity") or set(digits.lower()) <= DOUBLE_SIGNS:
            return number
    except ValueError:
        pass
    raise ValueError(invalid(name, text, "Not a number of type DOUBLE"))


def text_of(value: bool | float | str | tuple[str, ...]) -> str:
    """Write a value as Java does."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, float):
        return double_text(value)
    return str(value)


def double_text(value: float) -> str:
    """Write a double as Java does: plain from 0.001 to ten million, else with an exponent."""
    if isnan(value):
        return "NaN"
    if isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    # The fewest digits that read back as the same number.
    texts = (f"{value:.{digits}e}" for digits in range(1, 17))
    mantissa, _, exponent = next(text for text in texts if float(text) == value).partition("e")
    return f"{mantissa}E{int(exponent)}"


def invalid(name: str, value: object, why: str) -> str:
    """Word a refusal as Kafka does."""
    return f"Invalid value {value} for configuration {name}: {why}"
