"""What many handlers share: words of answers, how much one request may ask, large answers."""

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Final, TypeVar

from strom.broker.context import Large
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.primitives import MalformedFrame

Thing = TypeVar("Thing")
Described = TypeVar("Described")
Response = TypeVar("Response")

#: So many things one request may be about, where all of them are served in one turn of the loop.
#: Changes of the cluster have a limit of their own (`CHANGES_MAX`).
ASKED_MAX: Final = 50_000
#: An answer about so many things takes a millisecond or two to put together.
BUILT_AT_ONCE: Final = 200

NO_THROTTLE: Final = timedelta(0)

#: Bit n stands for the operation with Kafka's number n; without an authoriser all are allowed.
TOPIC_OPERATIONS: Final = sum(1 << number for number in (3, 4, 5, 6, 7, 8, 10, 11))
CLUSTER_OPERATIONS: Final = sum(1 << number for number in (5, 7, 8, 9, 10, 11, 12))
GROUP_OPERATIONS: Final = sum(1 << number for number in (3, 6, 8, 10, 11))
NOT_ASKED: Final = -(2**31)

#: What Kafka says along with a code when it has nothing more to say about the case at hand.
STOCK_TEXTS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ErrorCode.UNKNOWN_TOPIC_ID: "This server does not host this topic ID.",
    ErrorCode.INVALID_REQUEST: (
        "This most likely occurs because of a request being malformed by the client library or "
        "the message was sent to an incompatible broker. See the broker logs for more details."
    ),
}


def text_of(error: KafkaError) -> str | None:
    """Return what the refusal says of its case, or else what its code says in general."""
    return error.message if error.message is not None else STOCK_TEXTS.get(error.code)


def require_few(count: int) -> None:
    """Refuse to serve a request about more things than one may be about."""
    if count > ASKED_MAX:
        raise MalformedFrame(f"a request about {count} things, which is more than {ASKED_MAX}")


def each_once(
    things: Iterable[Thing], describe: Callable[[Thing], Described]
) -> tuple[Described, ...]:
    """Return the description of each thing; one that is named again is not looked up again."""
    named = tuple(things)
    known = {each: describe(each) for each in dict.fromkeys(named)}
    return tuple(known[each] for each in named)


def answer_of(
    count: int, build: Callable[[], Response], *, at_once: int = BUILT_AT_ONCE
) -> Response | Large:
    """Return the answer about so many things; build and write one about many in a thread.

    What it is built of must be values that nobody changes.
    """
    return build() if count <= at_once else Large(build)
