"""What a heartbeat says, and whether that makes sense before any group is looked at."""

from typing import NamedTuple

from strom.groups.consumer.assignors.subscriber import Partitions
from strom.groups.consumer.member import AWAY, JOINING, LEFT, NO_TIMEOUT
from strom.wire.errors import ErrorCode, KafkaError


class Heartbeat(NamedTuple):
    """What a member says; None for what it does not say."""

    group_id: str
    member_id: str
    epoch: int
    client_id: str
    client_host: str
    instance_id: str | None = None
    rack: str | None = None
    rebalance_timeout_ms: int = NO_TIMEOUT
    topic_names: frozenset[str] | None = None
    pattern: str | None = None
    assignor: str | None = None
    #: The partitions that it holds.
    owned: Partitions | None = None

    @property
    def is_full(self) -> bool:
        """Whether it says all that there is to say, as one does who may have missed an answer."""
        subscribes = self.topic_names is not None or self.pattern is not None
        return self.rebalance_timeout_ms != NO_TIMEOUT and subscribes and self.owned is not None

    @property
    def is_bare(self) -> bool:
        """Whether it says nothing of who the member is: as nearly all do."""
        return (
            self.topic_names is None
            and self.rebalance_timeout_ms == NO_TIMEOUT
            and self.pattern is None
            and self.assignor is None
            and self.instance_id is None
            and self.rack is None
        )


def check_heartbeat(said: Heartbeat, *, must_have_id: bool) -> None:
    """Refuse what no group could take, in Kafka's words; only old clients join without an id."""
    if must_have_id or said.epoch > JOINING or said.epoch == LEFT:
        _require_filled(said.member_id, "MemberId")
    _require_filled(said.group_id, "GroupId")
    _require_filled(said.instance_id, "InstanceId")
    _require_filled(said.rack, "RackId")
    if said.epoch == JOINING:
        _check_joining(said)
    elif said.epoch == AWAY and said.instance_id is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "InstanceId can't be null.")
    elif said.epoch < AWAY:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid.")


def check_assignor(name: str, known: tuple[str, ...]) -> None:
    """Refuse an assignor that is not served, in Kafka's words."""
    if name not in known:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {name} is not supported. Supported assignors: {', '.join(known)}.",
        )


def _require_filled(value: str | None, name: str) -> None:
    if value is not None and not value.strip():
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name} can't be empty.")


def _check_joining(said: Heartbeat) -> None:
    if said.rebalance_timeout_ms == NO_TIMEOUT:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "RebalanceTimeoutMs must be provided in first request."
        )
    if said.owned is None or said.owned:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "TopicPartitions must be empty when (re-)joining."
        )
    if said.topic_names is None and said.pattern is None:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
            "(re-)joining.",
        )
