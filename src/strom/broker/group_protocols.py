"""Which protocols of groups are served: what the APIs of consumer groups ask first.

The consumer protocol (KIP-848) is off where the feature `group.version` is 0, or where
`group.coordinator.rebalance.protocols` does not name it. What its groups have committed stays.
"""

from strom.broker.context import Context
from strom.metadata.feature_decisions import GROUP_VERSION
from strom.wire.errors import ErrorCode, KafkaError

CONSUMER = "consumer"


def require_consumer_protocol(context: Context) -> None:
    """Refuse what is asked by a protocol that is turned off."""
    served = context.settings.items("group.coordinator.rebalance.protocols")
    if CONSUMER not in served or not context.image.features.get(GROUP_VERSION):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
