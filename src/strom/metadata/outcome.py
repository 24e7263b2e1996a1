"""What the controller answers for one item of a request."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self, TypeVar

from strom.wire.errors import ErrorCode, KafkaError

Done = TypeVar("Done")


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
