"""What many answers say in the same words: no throttling, all operations, Kafka's stock texts."""

from datetime import timedelta
from typing import Final

from strom.wire.errors import ErrorCode, KafkaError

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
