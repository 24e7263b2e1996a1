"""Which protocols of groups are served: what the APIs of consumer groups ask first.

The consumer protocol (KIP-848) is off where the feature `group.version` is 0, or where
`group.coordinator.rebalance.protocols` does not name it. What its groups have committed stays.
"""

from functools import lru_cache

from strom.broker.context import Context
from strom.metadata.feature_decisions import GROUP_VERSION
from strom.metadata.settings.values import BrokerSettings
from strom.wire.errors import ErrorCode, KafkaError

CONSUMER = "consumer"


def require_consumer_protocol(context: Context) -> None:
    """Refuse what is asked by a protocol that is turned off."""
    parts = context.parts
    if not names_consumer(parts.settings) or not parts.image.features.get(GROUP_VERSION):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)


@lru_cache(maxsize=16)
def names_consumer(settings: BrokerSettings) -> bool:
    """Say whether the settings name the consumer protocol; settings never change."""
    return CONSUMER in settings.items("group.coordinator.rebalance.protocols")
