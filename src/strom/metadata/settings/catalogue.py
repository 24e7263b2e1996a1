"""All settings by name, and which of them say the same."""

from enum import IntEnum
from typing import Final, NamedTuple

from strom.metadata.settings.definition import READ_ONLY, Setting
from strom.metadata.settings.table import OF_BROKER, read_table


class Kind(IntEnum):
    """What can have settings; the numbers are the protocol's."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Resource(NamedTuple):
    """Something that has settings; a broker without a name stands for all of them."""

    kind: int
    name: str


TABLE: Final = read_table()

#: The broker's settings by subject, in the order in which they are documented.
BROKER_SUBJECTS: Final = {
    title.removeprefix(OF_BROKER): settings
    for title, settings in TABLE.items()
    if title.startswith(OF_BROKER)
}
BROKER: Final[dict[str, Setting]] = {
    name: each for settings in BROKER_SUBJECTS.values() for name, each in settings.items()
}
TOPIC: Final = TABLE["topic"]
GROUP: Final = TABLE["group"]
CLIENT_METRICS: Final = TABLE["client-metrics"]

#: Broker settings that may change at run time, for one broker or for all.
DYNAMIC: Final = frozenset(name for name, each in BROKER.items() if each.mode != READ_ONLY)

#: What has an effect for one listener alone, with its prefix.
FOR_A_LISTENER: Final = ("max.connections", "max.connection.creation.rate")

MINUTE_MS: Final = 60 * 1000
HOUR_MS: Final = 60 * MINUTE_MS

#: Several names for one thing in other units, the most telling first, with its factor.
UNITS: Final = {
    "log.retention.ms": (
        ("log.retention.ms", 1),
        ("log.retention.minutes", MINUTE_MS),
        ("log.retention.hours", HOUR_MS),
    ),
    "log.roll.ms": (("log.roll.ms", 1), ("log.roll.hours", HOUR_MS)),
    "log.roll.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", HOUR_MS)),
    "log.flush.interval.ms": (
        ("log.flush.interval.ms", 1),
        ("log.flush.scheduler.interval.ms", 1),
    ),
}


def broker_names(name: str) -> tuple[str, ...]:
    """Return the broker settings that say the same as this one, the most telling first."""
    for names in UNITS.values():
        if any(name == each for each, _ in names):
            return tuple(each for each, _ in names)
    return (name,)


def broker_setting(name: str) -> Setting | None:
    """Return the definition of a broker setting, also of one for a single listener."""
    base = without_listener(name)
    return BROKER.get(base) if base == name or base in FOR_A_LISTENER else None


def listener_setting(listener: str, name: str) -> str:
    """Return the name that sets something for one listener alone."""
    return f"listener.name.{listener.lower()}.{name}"


def without_listener(name: str) -> str:
    """Return the setting that a name with a listener's prefix sets for that listener alone."""
    return name.split(".", 3)[-1] if name.startswith("listener.name.") else name
