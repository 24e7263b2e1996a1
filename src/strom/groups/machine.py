"""The coordinator of the groups in one partition of `__consumer_offsets`, as a machine.

Durable state: the offsets, and the groups, classic ones and consumer groups by one name each.
What their own packages know of them is dispatched to by the type of record; a group that has
nothing but offsets, a *simple* one, is in `offsets` alone.
"""

from collections.abc import Callable, MutableMapping
from typing import Any

from strom.groups.offsets import Offsets
from strom.groups.records import OffsetCommitKey
from strom.metadata.delta import Delta
from strom.metadata.image import Image
from strom.metadata.settings.values import BrokerSettings
from strom.replicated.machine import Decision, KeyValue, TimerKey, Transaction

Groups = MutableMapping[str, Any]

#: By the type of key: takes the record as a fact (the groups, the key, the value or None).
APPLY: dict[type, Callable[[Groups, Any, Any], None]] = {}
#: By the first word of the key: decides what follows from a timer.
ON_TIMER: dict[str, Callable[["GroupMachine", TimerKey, int], Decision[KeyValue, object]]] = {}

NOTHING: Decision[KeyValue, object] = Decision((), None)


class GroupMachine:
    """Groups and their offsets."""

    def __init__(self, image: Image, settings: BrokerSettings) -> None:
        self.image = image
        self.settings = settings
        #: Durable.
        self.offsets = Offsets()
        #: Durable: classic and consumer groups by their ids.
        self.groups: dict[str, Any] = {}
        #: By group id, never logged.
        self.soft: dict[str, object] = {}

    def see(self, image: Image, settings: BrokerSettings) -> None:
        """Decide by this image and these settings from now on."""
        self.image, self.settings = image, settings

    # State.

    def apply(self, record: KeyValue, transaction: Transaction | None = None) -> None:
        """Take the record as a fact; one of a transaction counts once that is committed."""
        key, value = record
        if type(key) is OffsetCommitKey:
            self.offsets.apply(key, value, transaction)
            return
        apply = APPLY.get(type(key))
        if apply is not None:
            apply(self.groups, key, value)

    def on_marker(self, producer_id: int, producer_epoch: int, *, committed: bool) -> None:
        """Let the offsets of the producer's transaction count, or forget them."""
        self.offsets.end_transaction(producer_id, committed=committed)

    def set_soft(self, key: str, value: object) -> None:
        """Replace the soft state of a group; None forgets it."""
        if value is None:
            self.soft.pop(key, None)
        else:
            self.soft[key] = value

    # What happens by itself.

    def on_timer(self, key: TimerKey, now_ms: int) -> Decision[KeyValue, object]:
        """Decide what follows from the time of that timer having come."""
        return ON_TIMER[key[0]](self, key, now_ms)

    def on_loaded(self, now_ms: int) -> Decision[KeyValue, object]:
        """Decide what to do first, now that the log was read."""
        return NOTHING

    def on_metadata(self, delta: Delta, now_ms: int) -> Decision[KeyValue, object]:
        """Decide what follows from a change of the metadata."""
        return NOTHING
