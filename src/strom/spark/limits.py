"""Where a read begins and ends, as its options say it, before a broker was asked.

Three options may say it, and the first that is given counts, as in Spark's connector: one time
for all partitions, a time per partition, or offsets (`earliest`, `latest`, or a number each).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from strom.spark.failure import OptionError
from strom.spark.places import EARLIEST, LATEST, NUMBER_MAX, Place, name_places, parse_offsets


class NoMatch(Enum):
    """What happens to a partition in which nothing is as new as the time asked for."""

    ERROR = "error"
    LATEST = "latest"


@dataclass(frozen=True, slots=True)
class ByOffset:
    """An offset per partition, or one (LATEST, EARLIEST) for all of them."""

    everywhere: int | None
    each: Mapping[Place, int]


@dataclass(frozen=True, slots=True)
class ByTime:
    """The first record of this time or later, per partition or for all of them."""

    everywhere: int | None
    each: Mapping[Place, int]
    no_match: NoMatch


Limit = ByOffset | ByTime
AT_EARLIEST = ByOffset(EARLIEST, {})
AT_LATEST = ByOffset(LATEST, {})


class Ways(NamedTuple):
    """The options that say one end of a read, and what holds for it."""

    time: str
    time_each: str
    offsets: str
    default: ByOffset
    #: An end that makes no sense here, and the words for it.
    barred: int | None
    is_start: bool


STREAM_STARTS = Ways(
    "startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets", AT_LATEST, None, True
)
BATCH_STARTS = STREAM_STARTS._replace(default=AT_EARLIEST, barred=LATEST)
BATCH_ENDS = Ways(
    "endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets", AT_LATEST, EARLIEST, False
)
_WORDS = {"earliest": EARLIEST, "latest": LATEST}
_NAMES = {number: word for word, number in _WORDS.items()}


def parse_limit(options: Mapping[str, str], ways: Ways) -> Limit:
    """Read one end of a read; the options' names are in lower case."""
    no_match = _no_match(options) if ways.is_start else NoMatch.LATEST
    if (text := options.get(ways.time.lower())) is not None:
        return ByTime(_time(ways.time, text), {}, no_match)
    if (text := options.get(ways.time_each.lower())) is not None:
        each = parse_offsets(ways.time_each, text)
        if any(time < 0 for time in each.values()):
            raise OptionError(f"Option '{ways.time_each}': a time is in milliseconds since 1970.")
        return ByTime(None, each, no_match)
    text = options.get(ways.offsets.lower())
    if text is None:
        return ways.default
    word = text.strip().lower()
    if word in _WORDS:
        _refuse(_WORDS[word], ways, "")
        return ByOffset(_WORDS[word], {})
    if not word.startswith("{"):
        raise OptionError(
            f"Option '{ways.offsets}' is earliest, latest or a JSON object, not '{text}'."
        )
    each = parse_offsets(ways.offsets, text)
    for place, offset in each.items():
        _refuse(offset, ways, f" of {name_places({place})}")
    return ByOffset(None, each)


def _refuse(offset: int, ways: Ways, of: str) -> None:
    if offset == ways.barred:
        raise OptionError(
            f"Option '{ways.offsets}'{of} cannot be {_NAMES[offset]} in a batch read."
        )


def _no_match(options: Mapping[str, str]) -> NoMatch:
    name = "startingOffsetsByTimestampStrategy"
    text = options.get(name.lower(), "error").strip().lower()
    if text not in {"error", "latest"}:
        raise OptionError(f"Option '{name}' is error or latest, not '{text}'.")
    return NoMatch(text)


def _time(option: str, text: str) -> int:
    try:
        time = int(text.strip())
    except ValueError:
        time = -1
    # A broker would take one that is negative for an end of the partition.
    if not 0 <= time <= NUMBER_MAX:
        raise OptionError(f"Option '{option}' is a time in milliseconds since 1970, not '{text}'.")
    return time
