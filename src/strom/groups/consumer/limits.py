"""What settings say of consumer groups: the broker's, under what was set for one group.

A setting that changes at run time was checked against the broker's bounds when it was made. The
bounds may be others by now: then it counts as the nearest that is allowed.
"""

from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from strom.metadata.config_decisions import GROUP_RESOURCE
from strom.metadata.image import Image
from strom.metadata.settings.group_rules import ASSIGNOR_NAMES
from strom.metadata.settings.values import BrokerSettings


class Migration(Enum):
    """Which ways between the classic and the consumer protocol are open; the words are Kafka's."""

    DISABLED = "disabled"
    DOWNGRADE = "downgrade"
    UPGRADE = "upgrade"
    BIDIRECTIONAL = "bidirectional"

    @property
    def allows_upgrade(self) -> bool:
        """Whether a classic group may become a consumer group."""
        return self in (Migration.UPGRADE, Migration.BIDIRECTIONAL)

    @property
    def allows_downgrade(self) -> bool:
        """Whether a consumer group may become a classic group."""
        return self in (Migration.DOWNGRADE, Migration.BIDIRECTIONAL)


class Limits(NamedTuple):
    """The settings of one consumer group."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    #: The least time between two target assignments (KIP-1263).
    assignment_interval_ms: int
    #: How long what a pattern stands for may be taken as true.
    pattern_refresh_ms: int
    max_size: int
    #: How many members a group may have to become a classic one.
    classic_max_size: int
    migration: Migration
    #: The names that a member may choose from; the first is for those that do not choose.
    assignors: tuple[str, ...]


#: What can be set for one group, with the settings that bound it.
SESSION = (
    "consumer.session.timeout.ms",
    "group.consumer.min.session.timeout.ms",
    "group.consumer.max.session.timeout.ms",
)
HEARTBEAT = (
    "consumer.heartbeat.interval.ms",
    "group.consumer.min.heartbeat.interval.ms",
    "group.consumer.max.heartbeat.interval.ms",
)
ASSIGNMENT = (
    "consumer.assignment.interval.ms",
    "group.consumer.min.assignment.interval.ms",
    "group.consumer.max.assignment.interval.ms",
)


def limits_of(group_id: str, image: Image, settings: BrokerSettings) -> Limits:
    """Return the settings of the group, whether it exists or not."""
    limits = _limits_of_all(settings)
    own = image.config((GROUP_RESOURCE, group_id))
    if not own:
        return limits

    def value_of(names: tuple[str, str, str], otherwise: int) -> int:
        name, least, most = names
        return within(int(own[name]), least, most, settings) if name in own else otherwise

    return limits._replace(
        session_timeout_ms=value_of(SESSION, limits.session_timeout_ms),
        heartbeat_interval_ms=value_of(HEARTBEAT, limits.heartbeat_interval_ms),
        assignment_interval_ms=value_of(ASSIGNMENT, limits.assignment_interval_ms),
    )


@lru_cache(maxsize=16)
def _limits_of_all(settings: BrokerSettings) -> Limits:
    """Return what holds for groups without settings of their own; settings never change."""
    migration = settings.text("group.consumer.migration.policy") or ""
    return Limits(
        session_timeout_ms=settings.number("group.consumer.session.timeout.ms"),
        heartbeat_interval_ms=settings.number("group.consumer.heartbeat.interval.ms"),
        assignment_interval_ms=within(
            settings.number("group.consumer.assignment.interval.ms"), *ASSIGNMENT[1:], settings
        ),
        pattern_refresh_ms=settings.number("group.consumer.regex.refresh.interval.ms"),
        max_size=settings.number("group.consumer.max.size"),
        classic_max_size=settings.number("group.max.size"),
        migration=Migration(migration.lower()),
        assignors=tuple(
            dict.fromkeys(
                ASSIGNOR_NAMES[each] for each in settings.items("group.consumer.assignors")
            )
        ),
    )


def within(value: int, least: str, most: str, settings: BrokerSettings) -> int:
    """Return the number, or the bound that it crosses."""
    return min(max(value, settings.number(least)), settings.number(most))
