"""Decisions about topics: create, delete, give more partitions.

Every item of a request stands for itself: a refused one has its error, with Kafka's code and
text, and the others are done. All records of a decision are one batch, so a crash leaves a topic
with all of its partitions or none.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import NamedTuple
from uuid import UUID

from strom.metadata.config_decisions import Rules, checked_config
from strom.metadata.image import Image, Topic
from strom.metadata.outcome import CHANGES_MAX, Refusal, attempt, check_changes
from strom.metadata.partitions import new_partition
from strom.metadata.placement import Placer, Usable
from strom.metadata.records import (
    TOPIC_RESOURCE,
    Config,
    Record,
    RemoveTopic,
    TopicCreated,
    new_id,
)
from strom.metadata.topics import METADATA_TOPIC, check_topic_name, find_collision, unified
from strom.replicated.machine import Decision
from strom.wire.errors import ErrorCode, KafkaError

#: Asks for the cluster's default.
DEFAULT = -1

Assignment = tuple[int, tuple[int, ...]]


class Defaults(NamedTuple):
    """What a topic gets that does not ask for anything else."""

    partition_count: int
    replication_factor: int


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic that someone asks for."""

    name: str
    partition_count: int = DEFAULT
    replication_factor: int = DEFAULT
    #: (partition, brokers) each; empty to have the controller choose.
    assignments: tuple[Assignment, ...] = ()
    configs: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """A topic as it now is, or as it would be."""

    name: str
    id: UUID
    partition_count: int
    replication_factor: int
    configs: Mapping[str, str]


Created = dict[str, CreatedTopic | Refusal]


def create_topics(
    image: Image,
    asked: Sequence[NewTopic],
    *,
    defaults: Defaults,
    rules: Rules,
    rng: Random,
    validate_only: bool,
) -> Decision[Record, Created]:
    """Create the topics; the reply has one entry for each name."""
    counted = Counter(topic.name for topic in asked)
    too_many = attempt(lambda: _check_size(asked, defaults))
    reply: Created = {}
    records: list[Record] = []
    for topic in asked:
        if counted[topic.name] > 1:
            refused = Refusal(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            reply[topic.name] = refused
            continue
        creation = _Creation(image, topic, defaults, rules, rng)
        outcome = attempt(creation.decide) if too_many is None else too_many
        if isinstance(outcome, Refusal):
            reply[topic.name] = outcome
        else:
            reply[topic.name], made = outcome
            records.extend(made)
    return Decision(() if validate_only else tuple(records), reply)


def _check_size(asked: Sequence[NewTopic], defaults: Defaults) -> None:
    _check_total(sum(_count_asked(each, defaults) for each in asked))
    check_changes(max(len(asked), sum(len(each.configs) for each in asked)))


def _count_asked(topic: NewTopic, defaults: Defaults) -> int:
    if topic.assignments:
        return len(topic.assignments)
    count = topic.partition_count
    return defaults.partition_count if count == DEFAULT else max(count, 0)


def _check_total(partition_count: int, room: int = CHANGES_MAX) -> None:
    if partition_count > room:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
        )


class _Creation:
    """The creation of one topic."""

    def __init__(
        self, image: Image, asked: NewTopic, defaults: Defaults, rules: Rules, rng: Random
    ) -> None:
        self._image = image
        self._asked = asked
        self._defaults = defaults
        self._rules = rules
        self._rng = rng

    def decide(self) -> tuple[CreatedTopic, tuple[Record, ...]]:
        """Return the topic and its records, or raise why there is none."""
        asked = self._asked
        self._check_name()
        config = self._config()
        replicas = self._manual() if asked.assignments else self._placed()
        topic_id = new_id(self._rng.getrandbits(128))
        created = CreatedTopic(asked.name, topic_id, len(replicas), len(replicas[0]), config)
        records: list[Record] = [TopicCreated(name=asked.name, topic_id=topic_id)]
        records += [
            Config(resource_type=TOPIC_RESOURCE, resource_name=asked.name, name=name, value=value)
            for name, value in sorted(config.items())
        ]
        records += [
            new_partition(self._image, topic_id, index, each) for index, each in enumerate(replicas)
        ]
        return created, tuple(records)

    def _check_name(self) -> None:
        name, image = self._asked.name, self._image
        if name == METADATA_TOPIC:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Creation of internal topic {METADATA_TOPIC} is prohibited.",
            )
        check_topic_name(name)
        if name in image.topics_by_name:
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        alike = find_collision(name, image.names_alike.get(unified(name), ()))
        if alike is not None:
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"Topic '{name}' collides with existing topic: {alike}",
            )

    def _config(self) -> dict[str, str]:
        config: dict[str, str] = {}
        for name, value in self._asked.configs:
            if value is None:
                raise KafkaError(
                    ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {name}"
                )
            config[name] = value
        resource = (TOPIC_RESOURCE, self._asked.name)
        return checked_config(self._image, resource, config, self._rules)

    def _manual(self) -> list[tuple[int, ...]]:
        asked = self._asked
        _check_unset(asked.replication_factor, "replication factor")
        _check_unset(asked.partition_count, "numPartitions")
        by_index: dict[int, tuple[int, ...]] = {}
        size: int | None = None
        for index, brokers in asked.assignments:
            if index in by_index:
                raise _bad_assignment(
                    f"Found multiple manual partition assignments for partition {index}"
                )
            check_assignment(self._image, brokers, size)
            size = len(brokers)
            by_index[index] = brokers
        if sorted(by_index) != list(range(len(by_index))):
            raise _bad_assignment("partitions should be a consecutive 0-based integer sequence")
        replicas = [by_index[index] for index in range(len(by_index))]
        for index, brokers in enumerate(replicas):
            check_active(self._image, brokers, index)
        return replicas

    def _placed(self) -> list[tuple[int, ...]]:
        count, factor = self._asked.partition_count, self._asked.replication_factor
        if factor < DEFAULT or factor == 0:
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                "Replication factor must be larger than 0, or -1 to use the default value.",
            )
        if count < DEFAULT or count == 0:
            raise KafkaError(
                ErrorCode.INVALID_PARTITIONS,
                "Number of partitions was set to an invalid non-positive value.",
            )
        if factor == DEFAULT:
            factor = self._defaults.replication_factor
        if count == DEFAULT:
            count = self._defaults.partition_count
        try:
            return place(self._image, count, factor, self._rng)
        except KafkaError as error:
            raise KafkaError(
                error.code, f"Unable to replicate the partition {factor} time(s): {error.message}"
            ) from None


def _check_unset(value: int, what: str) -> None:
    if value != DEFAULT:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"A manual partition assignment was specified, but {what} was not set to -1.",
        )


def _bad_assignment(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)


def check_assignment(image: Image, brokers: tuple[int, ...], expected_size: int | None) -> None:
    """Refuse brokers that cannot together hold a partition."""
    if not brokers:
        raise _bad_assignment("The manual partition assignment includes an empty replica list.")
    seen: set[int] = set()
    for each in sorted(brokers):
        if each not in image.brokers:
            raise _bad_assignment(
                f"The manual partition assignment includes broker {each}, "
                "but no such broker is registered."
            )
        if each in seen:
            raise _bad_assignment(
                f"The manual partition assignment includes the broker {each} more than once."
            )
        seen.add(each)
    if expected_size is not None and len(brokers) != expected_size:
        raise _bad_assignment(
            f"The manual partition assignment includes a partition with {len(brokers)} "
            f"replica(s), but this is not consistent with previous partitions, which have "
            f"{expected_size} replica(s)."
        )


def check_active(image: Image, brokers: tuple[int, ...], index: int) -> None:
    """Refuse a partition that nobody could lead."""
    if not any(image.brokers[each].is_active for each in brokers):
        raise _bad_assignment(
            f"All brokers specified in the manual partition assignment for partition {index} "
            "are fenced or in controlled shutdown."
        )


def place(image: Image, count: int, factor: int, rng: Random) -> list[tuple[int, ...]]:
    """Choose brokers for so many partitions."""
    brokers = [
        Usable(each.id, each.rack, not each.is_active)
        for each in image.brokers.values()
        if not each.directories or set(each.directories) - set(each.cordoned_directories or ())
    ]
    placer = Placer(brokers, rng)
    return [placer.place(factor) for _ in range(count)]


# Deleting.


class TopicReference(NamedTuple):
    """A topic by its name or by its id."""

    name: str | None = None
    id: UUID | None = None


@dataclass(frozen=True, slots=True)
class DeletedTopic:
    """What became of the deletion of one topic; no refusal if it is gone."""

    name: str | None
    id: UUID | None
    refusal: Refusal | None = None


def delete_topics(
    image: Image, asked: Sequence[TopicReference]
) -> Decision[Record, tuple[DeletedTopic, ...]]:
    """Delete the topics; the reply has one entry for each that was named, once."""
    check_changes(len(asked))
    counted = Counter(asked)
    doomed: dict[UUID, Topic] = {}
    reply: list[DeletedTopic] = []
    for reference in counted:
        found = attempt(lambda given=reference: _find_topic(image, given, counted, doomed))  # type: ignore[misc]
        if isinstance(found, Refusal):
            reply.append(DeletedTopic(reference.name, reference.id, found))
        else:
            doomed[found.id] = found
            reply.append(DeletedTopic(found.name, found.id))
    return Decision(tuple(RemoveTopic(topic_id=each) for each in doomed), tuple(reply))


def _find_topic(
    image: Image,
    reference: TopicReference,
    counted: Mapping[TopicReference, int],
    doomed: Mapping[UUID, Topic],
) -> Topic:
    name, topic_id = reference
    if name is None and topic_id is None:
        raise _bad_request("Neither topic name nor id were specified.")
    if name is not None and topic_id is not None:
        raise _bad_request("You may not specify both topic name and topic id.")
    if counted[reference] > 1:
        raise _bad_request(f"Duplicate topic {'name' if topic_id is None else 'id'}.")
    if topic_id is not None:
        topic = image.topics_by_id.get(topic_id)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
    else:
        topic = image.topics_by_name.get(name or "")
        if topic is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                "This server does not host this topic-partition.",
            )
    if topic.id in doomed:
        raise _bad_request("The provided topic name maps to an ID that was already supplied.")
    return topic


def _bad_request(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


# Growing.


@dataclass(frozen=True, slots=True)
class MorePartitions:
    """A topic that is to have more partitions."""

    name: str
    #: How many it is to have in the end.
    count: int
    #: The brokers of each new one; None to have the controller choose.
    assignments: tuple[tuple[int, ...], ...] | None = None


def create_partitions(
    image: Image, asked: Sequence[MorePartitions], *, rng: Random, validate_only: bool
) -> Decision[Record, dict[str, Refusal | None]]:
    """Give the topics their new partitions, so many in all; the others stay as they are."""
    check_changes(len(asked))
    counted = Counter(each.name for each in asked)
    reply: dict[str, Refusal | None] = {}
    records: list[Record] = []
    for each in asked:
        if counted[each.name] > 1:
            reply[each.name] = Refusal(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            continue
        outcome = attempt(partial(_grow, image, each, rng, room=CHANGES_MAX - len(records)))
        if isinstance(outcome, Refusal):
            reply[each.name] = outcome
        else:
            reply[each.name] = None
            records.extend(outcome)
    return Decision(() if validate_only else tuple(records), reply)


def _grow(image: Image, asked: MorePartitions, rng: Random, *, room: int) -> tuple[Record, ...]:
    topic = image.topics_by_name.get(asked.name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    present = len(topic.partitions)
    if asked.count == present:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {present} partition(s).")
    if asked.count < present:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {asked.name} currently has {present} partition(s); "
            f"{asked.count} would not be an increase.",
        )
    _check_total(asked.count - present, room)
    factor = len(topic.partitions[0].replicas)
    replicas = _more_replicas(image, asked, asked.count - present, factor, rng)
    for offset, brokers in enumerate(replicas):
        check_active(image, brokers, present + offset)
    return tuple(
        new_partition(image, topic.id, present + offset, brokers)
        for offset, brokers in enumerate(replicas)
    )


def _more_replicas(
    image: Image, asked: MorePartitions, added: int, factor: int, rng: Random
) -> list[tuple[int, ...]]:
    if asked.assignments is None:
        return place(image, added, factor, rng)
    if len(asked.assignments) != added:
        raise _bad_assignment(
            f"Attempted to add {added} additional partition(s), but only "
            f"{len(asked.assignments)} assignment(s) were specified."
        )
    for brokers in asked.assignments:
        check_assignment(image, brokers, factor)
    return list(asked.assignments)
