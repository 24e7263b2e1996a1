"""Comparison and display of made messages, by their FIELDS."""

from typing import Any


def is_same(message: Any, other: object) -> bool:  # noqa: ANN401 - any message
    """Return whether both are of one class, with equal fields."""
    fields: tuple[str, ...] = message.FIELDS
    if type(other) is not type(message):
        return False
    return all(getattr(message, name) == getattr(other, name) for name in fields)


def hash_of(message: Any) -> int:  # noqa: ANN401 - any message
    """Return the hash of a message."""
    return hash(tuple([getattr(message, name) for name in message.FIELDS]))


def shown(message: Any) -> str:  # noqa: ANN401 - any message
    """Show a message as its constructor would make it."""
    fields = ", ".join(f"{name}={getattr(message, name)!r}" for name in message.FIELDS)
    return f"{type(message).__name__}({fields})"
