"""Decisions about features: which level of each the cluster works at.

Levels are Kafka's, of version 4.3: what a client or another broker concludes from a level must be
true of Strom. The level of `kraft.version` is the quorum's own affair and lies in its
control records, not here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from strom.metadata.image import METADATA_VERSION, Image
from strom.metadata.records import FeatureLevel, Record, SupportedFeature
from strom.replicated.machine import Decision
from strom.wire.errors import ErrorCode, KafkaError

GROUP_VERSION = "group.version"
TRANSACTION_VERSION = "transaction.version"

#: 4.3-IV0; and the lowest that still is KRaft as we know it, 3.3-IV3.
METADATA_VERSION_MAX = 30
METADATA_VERSION_MIN = 7

#: The levels that this node can work at, ordered as Kafka writes them.
SUPPORTED: Mapping[str, tuple[int, int]] = {
    METADATA_VERSION: (METADATA_VERSION_MIN, METADATA_VERSION_MAX),
    "eligible.leader.replicas.version": (0, 1),
    GROUP_VERSION: (0, 1),
    "kraft.version": (0, 1),
    "share.version": (0, 1),
    "streams.version": (0, 1),
    TRANSACTION_VERSION: (0, 2),
}

KRAFT_VERSION = "kraft.version"


def supported_features() -> tuple[SupportedFeature, ...]:
    """Return what a node that registers says it can."""
    return tuple(
        SupportedFeature(name=name, min_supported_version=low, max_supported_version=high)
        for name, (low, high) in SUPPORTED.items()
    )


def bootstrap_records() -> tuple[FeatureLevel, ...]:
    """Return the levels that a new cluster begins with: the newest."""
    return tuple(
        FeatureLevel(name=name, feature_level=high)
        for name, (_, high) in SUPPORTED.items()
        if name != KRAFT_VERSION
    )


class UpgradeType(IntEnum):
    """What a request for another level allows; the numbers are the protocol's."""

    UNKNOWN = 0
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


@dataclass(frozen=True, slots=True)
class FeatureUpdate:
    """A level that someone asks for."""

    name: str
    level: int
    upgrade_type: UpgradeType = UpgradeType.UPGRADE


def update_features(
    image: Image, asked: Sequence[FeatureUpdate], *, node_id: int, validate_only: bool
) -> Decision[Record, None]:
    """Move the features to other levels: all of them, or none if one of them cannot."""
    records: list[Record] = []
    for update in asked:
        try:
            records.extend(_update(image, update, node_id))
        except KafkaError as error:
            raise KafkaError(
                error.code,
                "The update failed for all features since the following feature had an error: "
                f"{error.message}",
            ) from None
    return Decision(() if validate_only else tuple(records), None)


def _update(image: Image, update: FeatureUpdate, node_id: int) -> tuple[Record, ...]:
    if update.upgrade_type is UpgradeType.UNKNOWN:
        raise _invalid(update, "The controller does not support the given upgrade type.")
    if update.level < 0:
        raise _invalid(update, "A feature version cannot be less than 0.")
    _check_supported(image, update, node_id)
    if update.name not in SUPPORTED:
        # Level 0 of a feature that nobody knows, which the check of ranges lets through.
        raise _invalid(update, f"Feature {update.name} not found.")
    current = _current(image, update.name)
    is_upgrade = update.upgrade_type is UpgradeType.UPGRADE
    if update.level > current and not is_upgrade:
        raise _invalid(update, "Can't downgrade to a newer version.")
    if update.level < current:
        if is_upgrade:
            raise _invalid(
                update,
                "Can't downgrade the version of this feature without setting the upgrade type to "
                "either safe or unsafe downgrade.",
            )
        _check_downgrade(update, current)
    if update.level == current:
        return ()
    return (FeatureLevel(name=update.name, feature_level=update.level),)


def _current(image: Image, name: str) -> int:
    # A quorum that we format has the newest level, and there is no way back from it.
    return SUPPORTED[name][1] if name == KRAFT_VERSION else image.features.get(name, 0)


def _check_downgrade(update: FeatureUpdate, current: int) -> None:
    if update.name == KRAFT_VERSION:
        raise _invalid(update, "Can't downgrade the version of this feature.")
    if update.name == METADATA_VERSION:
        raise KafkaError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"Unsupported metadata.version downgrade from {current} to {update.level}. "
            + (
                "Unsafe metadata downgrade is not supported in this version."
                if update.upgrade_type is UpgradeType.UNSAFE_DOWNGRADE
                else "Refusing to perform the requested downgrade because it might delete "
                "metadata information."
            ),
        )


def _check_supported(image: Image, update: FeatureUpdate, node_id: int) -> None:
    _check_range(update, SUPPORTED.get(update.name), f"Local controller {node_id}")
    for broker in sorted(image.brokers.values()):
        ranges = {
            each.name: (each.min_supported_version, each.max_supported_version)
            for each in broker.features
        }
        _check_range(update, ranges.get(update.name), f"Broker {broker.id}")


def _check_range(update: FeatureUpdate, levels: tuple[int, int] | None, who: str) -> None:
    if levels is None:
        if update.level:
            raise _invalid(update, f"{who} does not support this feature.")
        return
    low, high = levels
    if not low <= update.level <= high:
        raise _invalid(update, f"{who} only supports versions {low}-{high}")


def _invalid(update: FeatureUpdate, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"Invalid update version {update.level} for feature {update.name}. {reason}",
    )
