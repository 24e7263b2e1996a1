"""What the controller answers for one item of a request."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self, TypeVar

from strom.wire.errors import ErrorCode, KafkaError

Done = TypeVar("Done")

#: So many changes one request may ask for, as in Kafka: they are one decision, and one batch.
CHANGES_MAX = 10_000


def check_changes(count: int) -> None:
    """Refuse a request for more changes than one may ask for."""
    if count > CHANGES_MAX:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation."
        )


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an item was not done; the others of the request are not affected."""

    code: ErrorCode
    message: str | None = None

    @classmethod
    def of(cls, error: KafkaError) -> Self:
        """Return the refusal that the exception stands for."""
        return cls(error.code, error.message)


def attempt(decide: Callable[[], Done]) -> Done | Refusal:
    """Return what the item leads to, or why it is refused."""
    try:
        return decide()
    except KafkaError as error:
        return Refusal.of(error)
