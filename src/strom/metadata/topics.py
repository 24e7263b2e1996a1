"""Names of topics: what is allowed, and which two are too much alike.

Kafka's metrics turn dots into underscores, so names that differ in nothing else collide.
"""

import re
from collections.abc import Iterable

from strom.wire.errors import ErrorCode, KafkaError

NAME_LENGTH_MAX = 249
METADATA_TOPIC = "__cluster_metadata"
#: Topics that Kafka itself writes to; clients are told so. A name may begin with two
#: underscores without being one of these.
INTERNAL_TOPICS = frozenset(("__consumer_offsets", "__transaction_state", "__share_group_state"))

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+", re.ASCII)


def check_topic_name(name: str) -> None:
    """Refuse a name that no topic can have."""
    reason = find_fault(name)
    if reason is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")


def absence_of(name: str) -> ErrorCode:
    """Say why there is no topic of this name: there cannot be, or there is none."""
    if find_fault(name) is not None:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def find_fault(name: str) -> str | None:
    """Return why no topic can have this name, if none can."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > NAME_LENGTH_MAX:
        return f"the length of '{name}' is longer than the max allowed length {NAME_LENGTH_MAX}"
    if _LEGAL.fullmatch(name) is None:
        return (
            f"'{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )
    return None


def is_internal(name: str | None) -> bool:
    """Whether the topic is one that Kafka itself keeps state in."""
    return name in INTERNAL_TOPICS


def unified(name: str) -> str:
    """Return what names that collide have in common."""
    return name.replace(".", "_")


def may_collide(name: str) -> bool:
    """Whether there could be another name that this one collides with."""
    return "." in name or "_" in name


def find_collision(name: str, others: Iterable[str]) -> str | None:
    """Return the first of the names that this one collides with."""
    if not may_collide(name):
        return None
    common = unified(name)
    alike = [each for each in others if each != name and unified(each) == common]
    return min(alike) if alike else None
