"""The controller: decides what the cluster becomes, as a machine over the metadata log.

Its state is one image. Every decision is a function of the image and of what is asked (in
`topic_decisions`, `config_decisions`, `broker_decisions`, `feature_decisions`); here they are
bound to the image of the moment. What is decided is a record in the log before it is state.
"""

from collections.abc import Mapping, Sequence
from random import Random
from uuid import UUID

from strom.metadata import (
    broker_decisions,
    config_decisions,
    feature_decisions,
    topic_decisions,
)
from strom.metadata.broker_decisions import Heartbeat, Place, Pulse, Registration
from strom.metadata.config_decisions import ALL_BROKERS, MIN_INSYNC, Alteration, Altered, Rules
from strom.metadata.feature_decisions import FeatureUpdate
from strom.metadata.image import Image, Resource, applied
from strom.metadata.outcome import Refusal
from strom.metadata.records import BROKER_RESOURCE, Config, Record, RegisterController
from strom.metadata.topic_decisions import (
    Created,
    Defaults,
    DeletedTopic,
    MorePartitions,
    NewTopic,
    TopicReference,
)
from strom.replicated.machine import Decision


class Controller:
    """The cluster, and what may become of it."""

    def __init__(self, image: Image, *, cluster_id: str, node_id: int, rules: Rules) -> None:
        self._image = image
        self._cluster_id = cluster_id
        self._node_id = node_id
        self._rules = rules

    @property
    def image(self) -> Image:
        """The cluster as it will be once all that was decided is committed."""
        return self._image

    # State: changed by apply, and by nothing else.

    def apply(self, record: Record) -> None:
        """Take the record as a fact."""
        self._image = applied(self._image, record)

    # Decisions: read the state, change nothing.

    def create_topics(
        self, asked: Sequence[NewTopic], *, defaults: Defaults, rng: Random, validate_only: bool
    ) -> Decision[Record, Created]:
        """Create the topics; the reply has one entry for each name."""
        return topic_decisions.create_topics(
            self._image,
            asked,
            defaults=defaults,
            rules=self._rules,
            rng=rng,
            validate_only=validate_only,
        )

    def delete_topics(
        self, asked: Sequence[TopicReference]
    ) -> Decision[Record, tuple[DeletedTopic, ...]]:
        """Delete the topics; the reply has one entry for each that was named, once."""
        return topic_decisions.delete_topics(self._image, asked)

    def create_partitions(
        self, asked: Sequence[MorePartitions], *, rng: Random, validate_only: bool
    ) -> Decision[Record, dict[str, Refusal | None]]:
        """Give the topics their new partitions; the others stay as they are."""
        return topic_decisions.create_partitions(
            self._image, asked, rng=rng, validate_only=validate_only
        )

    def incrementally_alter_configs(
        self, asked: Sequence[tuple[Resource, tuple[Alteration, ...]]], *, validate_only: bool
    ) -> Decision[Record, Altered]:
        """Change single settings of the resources."""
        return config_decisions.incrementally_alter_configs(
            self._image, asked, self._rules, validate_only=validate_only
        )

    def replace_configs(
        self, asked: Sequence[tuple[Resource, Mapping[str, str | None]]], *, validate_only: bool
    ) -> Decision[Record, Altered]:
        """Set these settings of the resources, and take back all others."""
        return config_decisions.replace_configs(
            self._image, asked, self._rules, validate_only=validate_only
        )

    def register_controller(self, record: RegisterController) -> Decision[Record, None]:
        """Note where a controller can be reached and what it can."""
        known = self._image.controllers.get(record.controller_id)
        return Decision(() if known == record else (record,), None)

    def register_broker(
        self, registration: Registration, *, broker_epoch: int, has_session: bool
    ) -> Decision[Record, int]:
        """Take the broker in, fenced; the reply is its epoch."""
        return broker_decisions.register_broker(
            self._image,
            registration,
            cluster_id=self._cluster_id,
            broker_epoch=broker_epoch,
            has_session=has_session,
        )

    def heartbeat(self, beat: Heartbeat) -> Decision[Record, Pulse]:
        """Let the broker serve, fence it, or move its leaders away, as it wishes."""
        return broker_decisions.heartbeat(self._image, beat)

    def fence_broker(self, broker_id: int) -> Decision[Record, None]:
        """Take the lead and the in-sync places from a broker that was not heard of."""
        return broker_decisions.fence_broker(self._image, broker_id)

    def unregister_broker(self, broker_id: int) -> Decision[Record, None]:
        """Forget the broker; what it led is led by others."""
        return broker_decisions.unregister_broker(self._image, broker_id)

    def allocate_producer_ids(self, broker_id: int, broker_epoch: int) -> Decision[Record, range]:
        """Give the broker a block of producer ids that nobody else has or had."""
        return broker_decisions.allocate_producer_ids(self._image, broker_id, broker_epoch)

    def assign_directories(
        self, broker_id: int, broker_epoch: int, asked: Sequence[tuple[UUID, Place]]
    ) -> Decision[Record, Mapping[tuple[UUID, Place], Refusal | None]]:
        """Note in which directory the broker has which partition."""
        return broker_decisions.assign_directories(self._image, broker_id, broker_epoch, asked)

    def update_features(
        self, asked: Sequence[FeatureUpdate], *, validate_only: bool
    ) -> Decision[Record, None]:
        """Move the features to other levels: all of them, or none if one of them cannot."""
        return feature_decisions.update_features(
            self._image, asked, node_id=self._node_id, validate_only=validate_only
        )

    def bootstrap(
        self, records: Sequence[Record], *, min_insync_replicas: int = 1
    ) -> Decision[Record, None]:
        """Begin a new cluster with these records; one that has begun is left alone."""
        if self._image.metadata_version:
            return Decision((), None)
        # KIP-966: from the first day on, this number is the cluster's and not a broker's.
        insync = Config(
            resource_type=BROKER_RESOURCE,
            resource_name=ALL_BROKERS,
            name=MIN_INSYNC,
            value=str(min_insync_replicas),
        )
        return Decision((*records, insync), None)
