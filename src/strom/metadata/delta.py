"""The difference of two images: what a batch of records touched.

Followers of the metadata look at what was touched, in the image before and in the one after,
instead of comparing clusters.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from uuid import UUID

from strom.metadata import kept, records
from strom.metadata.image import Image, Partition, Resource, Topic, applied, topics_called
from strom.metadata.records import Record


@dataclass(frozen=True, slots=True)
class Change:
    """A partition before and after; None where it did not exist."""

    topic: Topic
    index: int
    before: Partition | None
    after: Partition | None


@dataclass(frozen=True, slots=True)
class Delta:
    """What lies between two images: what was touched, to be looked up in both."""

    before: Image
    after: Image
    topics: frozenset[UUID]
    partitions: frozenset[tuple[UUID, int]]
    brokers: frozenset[int]
    configs: frozenset[Resource]
    features: frozenset[str]
    others: frozenset[kept.Identity]

    def created_topics(self) -> Iterator[Topic]:
        """Yield the topics that are new, ordered by name."""
        return self._topics_only_in(self.after, self.before)

    def deleted_topics(self) -> Iterator[Topic]:
        """Yield the topics that are gone, as they were, ordered by name."""
        return self._topics_only_in(self.before, self.after)

    def _topics_only_in(self, one: Image, other: Image) -> Iterator[Topic]:
        found = [
            topic
            for each in self.topics
            if each not in other.topics_by_id and (topic := one.topics_by_id.get(each)) is not None
        ]
        return iter(sorted(found))

    def changes(self) -> Iterator[Change]:
        """Yield every partition that is new, changed or gone, ordered by topic and index."""
        indexes: dict[UUID, set[int]] = {}
        for topic_id, index in self.partitions:
            indexes.setdefault(topic_id, set()).add(index)
        for gone in self.deleted_topics():
            indexes.setdefault(gone.id, set()).update(gone.partitions)
        found = [topic for each in indexes if (topic := self._topic(each)) is not None]
        for _, topic_id, _ in sorted(found, key=_name_and_id):
            for index in sorted(indexes[topic_id]):
                change = self._change((topic_id, index))
                if change is not None:
                    yield change

    def _topic(self, topic_id: UUID) -> Topic | None:
        new = self.after.topics_by_id.get(topic_id)
        return self.before.topics_by_id.get(topic_id) if new is None else new

    def _change(self, place: tuple[UUID, int]) -> Change | None:
        topic_id, index = place
        old, new = self.before.topics_by_id.get(topic_id), self.after.topics_by_id.get(topic_id)
        before = None if old is None else old.partitions.get(index)
        after = None if new is None else new.partitions.get(index)
        topic = new or old
        if topic is None or before == after:
            return None
        return Change(topic, index, before, after)


def _name_and_id(topic: Topic) -> tuple[str, UUID]:
    return topic.name, topic.id


def advance(
    image: Image, batch: Iterable[Record], *, end_offset: int | None = None, leader_epoch: int = -1
) -> Delta:
    """Apply the records; return the delta to the image they lead to."""
    step = Step(image)
    step.take(batch)
    return step.delta(end_offset=end_offset, leader_epoch=leader_epoch)


class Step:
    """The way from one image to the next; many records may be taken a portion at a time."""

    def __init__(self, image: Image) -> None:
        self._before = self._after = image
        self._touched = Touched()

    def take(self, records: Iterable[Record]) -> None:
        """Apply the records to what will be the next image."""
        for record in records:
            self._touched.note(self._after, record)
            self._after = applied(self._after, record)

    def delta(self, *, end_offset: int | None = None, leader_epoch: int = -1) -> Delta:
        """Return the delta to the image that all of them lead to."""
        after, touched = self._after, self._touched
        if end_offset is not None:
            after = after._replace(end_offset=end_offset, leader_epoch=leader_epoch)
        return Delta(
            before=self._before,
            after=after,
            topics=frozenset(touched.topics),
            partitions=frozenset(touched.partitions),
            brokers=frozenset(touched.brokers),
            configs=frozenset(touched.configs),
            features=frozenset(touched.features),
            others=frozenset(touched.others),
        )


class Touched:
    """Collects what records are about."""

    def __init__(self) -> None:
        self.topics: set[UUID] = set()
        self.partitions: set[tuple[UUID, int]] = set()
        self.brokers: set[int] = set()
        self.configs: set[Resource] = set()
        self.features: set[str] = set()
        self.others: set[kept.Identity] = set()

    def note(self, image: Image, record: Record) -> None:
        """Take note of what the record changes in the image."""
        match record:
            case records.PartitionCreated() | records.PartitionChange():
                self.topics.add(record.topic_id)
                self.partitions.add((record.topic_id, record.partition_id))
            case records.TopicCreated() | records.RemoveTopic():
                self.topics.add(record.topic_id)
                self._note_configs_of(image, record)
            case records.Config():
                self.configs.add((record.resource_type, record.resource_name))
            case records.FeatureLevel():
                self.features.add(record.name)
            case records.ClearElr():
                self._note_all_partitions(image, record.topic_name)
            case records.FenceBroker() | records.UnfenceBroker():
                self.brokers.add(record.id)
            case _:
                self._note_rest(record)

    def _note_configs_of(self, image: Image, record: Record) -> None:
        if isinstance(record, records.RemoveTopic):
            topic = image.topics_by_id.get(record.topic_id)
            if topic is not None:
                self.configs.add((records.TOPIC_RESOURCE, topic.name))

    def _note_all_partitions(self, image: Image, topic_name: str) -> None:
        for topic in topics_called(image, topic_name):
            self.topics.add(topic.id)
            self.partitions.update((topic.id, index) for index in topic.partitions)

    def _note_rest(self, record: Record) -> None:
        if isinstance(
            record,
            records.RegisterBroker | records.BrokerRegistrationChange | records.UnregisterBroker,
        ):
            self.brokers.add(record.broker_id)
        elif isinstance(record, kept.KEPT):
            self.others.add(kept.identity(record))
