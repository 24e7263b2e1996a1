# Compiled by mypyc.
"""What every message that is made from kio's schemas can do: be compared and shown."""

from typing import ClassVar


class Message:
    """A message, or a struct inside one; `generator` makes the classes."""

    __slots__ = ()
    FIELDS: ClassVar[tuple[str, ...]] = ()

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.FIELDS)

    def __hash__(self) -> int:
        return hash(tuple([getattr(self, name) for name in self.FIELDS]))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.FIELDS)
        return f"{type(self).__name__}({fields})"
