"""Subscriptions by regular expression: whether one is valid, and which topics it stands for.

The syntax is RE2's, as in Kafka, and a name must match as a whole. RE2 needs time in proportion to
the text whatever the expression, so no client can hold the broker up with one. Kafka runs RE2/J,
whose words for what is wrong are given back.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache

from strom.groups.consumer.group import Resolved
from strom.metadata.image import Image
from strom.wire.errors import ErrorCode, KafkaError

#: How long a group waits at least between two looks at all topics.
REFRESH_MS_MIN = 10_000
#: How many compiled expressions are remembered: who wants to fill the memory sends large ones.
MATCHERS_MAX = 16
#: What the matcher of one expression may take up; above it, it would match nothing.
MATCHER_BYTES_MAX = 64 << 20

#: What RE2 says is wrong, and what RE2/J says of the same.
REASONS = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "regexp/syntax: internal error",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "trailing \\": "trailing backslash at end of expression",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}


def check_pattern(pattern: str) -> None:
    """Refuse an expression that cannot be read."""
    _matcher(pattern)


def resolve(pattern: str, image: Image, now_ms: int) -> Resolved:
    """Return the topics that an expression stands for now; one that cannot be read has none."""
    names: Iterable[str] = ()
    # What another broker could read may not be readable here.
    with suppress(KafkaError):
        names = filter(_matcher(pattern), image.topics_by_name)
    return Resolved(frozenset(names), image.end_offset, now_ms)


@lru_cache(MATCHERS_MAX)
def _matcher(pattern: str) -> Callable[[str], object]:
    """Return what tells whether a name matches."""
    # Not every broker has such a subscription, and loading takes longer than a heartbeat.
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = MATCHER_BYTES_MAX
    try:
        re2.compile(pattern, options)
    except re2.error as error:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: "
            f"{_reason(error.args[0])}.",
        ) from None
    # It remembers many by itself, whatever they take up.
    re2.purge()
    # Matching against a set of one costs a tenth of what making a match object does.
    one = re2.Set.FullMatchSet(options)
    one.Add(pattern)
    one.Compile()
    matches: Callable[[str], object] = one.Match
    return matches


def _reason(said: bytes | str) -> str:
    text = said.decode(errors="replace") if isinstance(said, bytes) else said
    kind = text.split(": ", 1)[0]
    return REASONS.get(kind, kind)
