"""Which settings of groups will not do together; the words are Kafka's."""

from collections.abc import Mapping
from typing import Final

from strom.metadata.settings.definition import SettingsError
from strom.metadata.settings.values import BrokerSettings

#: What `group.consumer.assignors` takes, by the name that clients use: also Kafka's classes.
ASSIGNOR_NAMES: Final[Mapping[str, str]] = {
    "uniform": "uniform",
    "range": "range",
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
}
KINDS: Final = ("consumer", "share", "streams")
#: What each kind of group has with a least and a most.
BOUNDED: Final = ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms")


def require_sound_groups(settings: BrokerSettings) -> None:
    """Refuse values that contradict each other, and protocols or assignors there are none of."""
    if "classic" not in settings.items("group.coordinator.rebalance.protocols"):
        raise SettingsError("Disabling the 'classic' protocol is not supported.")
    for name in settings.items("group.consumer.assignors"):
        if name not in ASSIGNOR_NAMES:
            raise SettingsError(
                f"Class {name} cannot be found: group.consumer.assignors takes uniform and range"
            )
    for kind in KINDS:
        for what in BOUNDED:
            require_bounded(settings, kind, what)
        beat, session = f"group.{kind}.heartbeat.interval.ms", f"group.{kind}.session.timeout.ms"
        if settings.number(beat) >= settings.number(session):
            raise SettingsError(f"{beat} must be less than {session}")
    require_at_most(
        settings, "group.streams.num.standby.replicas", "group.streams.max.standby.replicas"
    )


def require_bounded(settings: BrokerSettings, kind: str, what: str) -> None:
    """Refuse a value that is not between its least and its most."""
    least, value, most = (f"group.{kind}.{bound}{what}" for bound in ("min.", "", "max."))
    require_at_least(settings, most, least)
    require_at_least(settings, value, least)
    require_at_most(settings, value, most)


def require_at_least(settings: BrokerSettings, name: str, least: str) -> None:
    """Refuse a value that is less than another."""
    if settings.number(name) < settings.number(least):
        raise SettingsError(f"{name} must be greater than or equal to {least}")


def require_at_most(settings: BrokerSettings, name: str, most: str) -> None:
    """Refuse a value that is more than another."""
    if settings.number(name) > settings.number(most):
        raise SettingsError(f"{name} must be less than or equal to {most}")
