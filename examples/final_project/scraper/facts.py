"""What is a fact, and which facts are new.

A fact has an identity (`name`: "where flight F-7 stands") and a content. It is new when its content
is not the one that was written last under that name. So a page that is fetched twice, by one
scraper or by its successor after a crash, makes no second fact. A correction does, and so does a
value that comes back after another.

`Seen` is what the topics already hold. It is read from the topics themselves, so there is no second
place that could disagree with them.
"""

import hashlib
import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

#: The oldest are forgotten beyond this; pages show far less.
NAMES_MAX = 500_000

Value = Mapping[str, str | int | float]

NAME_HEADER = "fact"
CONTENT_HEADER = "content"


@dataclass(frozen=True, slots=True)
class Fact:
    """One record to be: where it goes, what it is called, when it happened, what it says."""

    topic: str
    key: str
    name: str
    at_ms: int
    value: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def content(self) -> str:
        """Return a hash of what the fact says; when it was fetched is no part of that."""
        return hashlib.blake2b(self.value, digest_size=16).hexdigest()


def encoded(value: Value) -> bytes:
    """Return a value as JSON that is the same for the same value."""
    text = json.dumps(
        value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
    )
    return text.encode()


class Seen:
    """The content that was written last under each name of a topic."""

    def __init__(self, names_max: int = NAMES_MAX) -> None:
        self._contents: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._names_max = names_max

    def __len__(self) -> int:
        return len(self._contents)

    def new(self, facts: Iterable[Fact]) -> list[Fact]:
        """Return the facts that the topics do not hold; of several of one name, each change."""
        latest: dict[tuple[str, str], str] = {}
        found = []
        for fact in facts:
            name = fact.topic, fact.name
            if latest.get(name, self._contents.get(name)) != fact.content:
                latest[name] = fact.content
                found.append(fact)
        return found

    def learn(self, topic: str, name: str, content: str) -> None:
        """Note what is now in the topic under that name."""
        self._contents[topic, name] = content
        self._contents.move_to_end((topic, name))
        if len(self._contents) > self._names_max:
            self._contents.popitem(last=False)
