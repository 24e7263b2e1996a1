"""Partitions and offsets as Spark's connector writes them in JSON.

    {"rides": {"0": 23, "1": -2}}      offsets; -1 is the end, -2 the beginning
    {"rides": [0, 1]}                  partitions

A stream's offset is of the first form, and so is what its checkpoint holds. Three things stand
there beside the topics, under names that no topic can have: the ids that the topics had, by which
one that was deleted and made anew is told from the one that was read before; a name for the query
that stays the same when it is started again; and of the first micro-batch where it begins, which
Spark does not keep. A checkpoint without them, as Spark's own connector leaves it, is taken up all
the same.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from uuid import UUID

from strom.spark.failure import OptionError

LATEST = -1
EARLIEST = -2
#: What the protocol can say.
NUMBER_MAX = 2**63 - 1
IDS = "#ids"
QUERY = "#query"
BEGAN = "#began"

#: A topic and the number of one of its partitions.
Place = tuple[str, int]
Offsets = Mapping[Place, int]
Assigned = frozenset[Place]


class Progress(NamedTuple):
    """How far a stream has come: the offset that is next in each partition."""

    offsets: dict[Place, int]
    ids: dict[str, UUID]
    query: str
    #: Where the micro-batch begins that ends here; None: where the one before it ends.
    began: dict[Place, int] | None = None

    @classmethod
    def read(cls, value: Mapping[str, Any]) -> "Progress":
        """Read what `write` wrote, or what Spark's connector did."""
        ids = {topic: UUID(text) for topic, text in value.get(IDS, {}).items()}
        topics = {name: each for name, each in value.items() if name not in (IDS, QUERY, BEGAN)}
        began = _read_offsets(value[BEGAN]) if BEGAN in value else None
        return cls(_read_offsets(topics), ids, value.get(QUERY, ""), began)

    def write(self) -> dict[str, Any]:
        """Write it for the checkpoint; what is equal is written equally."""
        value: dict[str, Any] = _write_offsets(self.offsets)
        if self.ids:
            value[IDS] = {topic: str(self.ids[topic]) for topic in sorted(self.ids)}
        if self.query:
            value[QUERY] = self.query
        if self.began is not None:
            value[BEGAN] = _write_offsets(self.began)
        return value


def _read_offsets(value: Mapping[str, Any]) -> dict[Place, int]:
    return {
        (topic, int(number)): int(offset)
        for topic, partitions in value.items()
        for number, offset in partitions.items()
    }


def _write_offsets(offsets: Offsets) -> dict[str, dict[str, int]]:
    value: dict[str, dict[str, int]] = {}
    for (topic, number), offset in sorted(offsets.items()):
        value.setdefault(topic, {})[str(number)] = offset
    return value


def parse_partitions(option: str, text: str) -> Assigned:
    """Read partitions: `{"rides": [0, 1]}`."""
    places = set()
    for topic, numbers in _parse(option, text).items():
        if not isinstance(numbers, list) or not numbers:
            raise OptionError(f"Option '{option}': '{topic}' needs a list of partitions.")
        places |= {(topic, _natural(option, number)) for number in numbers}
    if not places:
        raise OptionError(f"Option '{option}' names no partition.")
    return frozenset(places)


def parse_offsets(option: str, text: str) -> dict[Place, int]:
    """Read a number per partition: `{"rides": {"0": 23}}`."""
    offsets = {}
    for topic, partitions in _parse(option, text).items():
        if not isinstance(partitions, dict):
            raise OptionError(f"Option '{option}': '{topic}' needs {{\"0\": …, \"1\": …}}.")
        for number, offset in partitions.items():
            place = topic, _natural(option, number)
            if type(offset) is not int or not EARLIEST <= offset <= NUMBER_MAX:
                raise OptionError(
                    f"Option '{option}': {offset!r} is no offset of {topic}-{number}."
                )
            offsets[place] = offset
    if not offsets:
        raise OptionError(f"Option '{option}' names no partition.")
    return offsets


def _parse(option: str, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise OptionError(f"Option '{option}' is no JSON: {error}: {text}") from None
    if not isinstance(value, dict):
        raise OptionError(f"Option '{option}' is an object with a name per topic, not {text}")
    return value


def _natural(option: str, value: object) -> int:
    try:
        number = int(str(value))
    except ValueError:
        number = -1
    if number < 0:
        raise OptionError(f"Option '{option}': {value!r} is no number of a partition.")
    return number


def name_places(places: Iterable[Place]) -> str:
    """Return partitions in a form for people: `rides-0, rides-1`."""
    return ", ".join(sorted(f"{topic}-{number}" for topic, number in places))
