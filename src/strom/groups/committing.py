"""Decisions about offsets: commit, fetch, delete, and let go of what nobody will ask for.

Kafka's rules, of version 4.3:

- Who names no generation and no member may commit while the group is empty: a consumer that
  assigns its partitions itself, or an admin. If there is no such group, there is one afterwards.
- An offset that nobody reads any more expires: `offsets.retention.minutes` after its group
  became empty, or after its commit where there never were members or they read other topics;
  earlier if an old client asked for it. With its last offset an empty group goes.
- The offsets of a deleted topic go with it, unless they are known to be of another one of its
  name. Who was not there to see it deleted looks for such offsets once the log was read.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple
from uuid import UUID

from strom.groups.offsets import ByPlace, Offsets, Place, tombstone
from strom.groups.owners import Author, Owner
from strom.groups.records import (
    NO_TIMESTAMP,
    NO_TOPIC_ID,
    OffsetCommitKey,
    OffsetCommitValue,
)
from strom.metadata.image import Image
from strom.replicated.machine import Decision, KeyValue, Transaction
from strom.wire.errors import ErrorCode, KafkaError

#: The last time that a record has room for.
TIME_MS_MAX = 2**63 - 1
#: In a request: as long as the broker's settings say.
NO_RETENTION = -1
#: The first version whose clients know that a group can be missing.
NOT_FOUND_FROM = 9
#: How many records one decision writes when offsets are cleaned up; the rest follows at once.
RECORDS_MAX = 1000


class NewOffset(NamedTuple):
    """What somebody wants to commit for a partition."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str | None = ""
    topic_id: UUID = NO_TOPIC_ID


class Commit(NamedTuple):
    """What somebody wants to commit."""

    group_id: str
    author: Author
    offsets: Sequence[NewOffset]
    retention_ms: int = NO_RETENTION
    transaction: Transaction | None = None


class Wanted(NamedTuple):
    """Which offsets of a topic somebody asks for."""

    topic: str
    topic_id: UUID
    partitions: Sequence[int]


class Query(NamedTuple):
    """Which offsets of a group somebody asks for; None for all that there are."""

    group_id: str
    topics: Sequence[Wanted] | None
    member_id: str | None = None
    member_epoch: int = -1
    require_stable: bool = False


class Answer(NamedTuple):
    """What is known of a partition; without a value nothing was committed."""

    partition: int
    value: OffsetCommitValue | None
    code: ErrorCode = ErrorCode.NONE


#: By topic, in the order in which they were asked for.
Answers = list[tuple[str, list[Answer]]]


# Commit.


def commit(
    owner: Owner | None, asked: Commit, *, now_ms: int, metadata_max: int
) -> Decision[KeyValue, list[ErrorCode]]:
    """Commit the offsets, all but those whose metadata is too long; a code for each."""
    group_id, author, offsets, retention_ms, transaction = asked
    if owner is None and author.epoch >= 0:
        raise missing_group(author)
    check_partition = None if owner is None else owner.check_commit(author)
    expires_ms = NO_TIMESTAMP
    if retention_ms != NO_RETENTION:
        expires_ms = min(now_ms + retention_ms, TIME_MS_MAX)
    records, codes = [], []
    for topic, partition, offset, leader_epoch, metadata, topic_id in offsets:
        if metadata and length_of(metadata) > metadata_max:
            codes.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
            continue
        if check_partition is not None:
            check_partition(topic, topic_id, partition)
        # Kafka's transactions do not tell the topic's id, nor do its offsets that expire early.
        kept_id = topic_id if transaction is None and expires_ms < 0 else NO_TOPIC_ID
        value = OffsetCommitValue(
            offset=offset,
            leader_epoch=leader_epoch,
            metadata=metadata or "",
            commit_timestamp_ms=now_ms,
            expire_timestamp_ms=expires_ms,
            topic_id=kept_id,
        )
        key = OffsetCommitKey(group=group_id, topic=topic, partition=partition)
        records.append(KeyValue(key, value))
        codes.append(ErrorCode.NONE)
    timers = () if owner is None else owner.commit_timers(author, now_ms)
    return Decision(tuple(records), codes, timers=timers, transaction=transaction)


def missing_group(author: Author) -> KafkaError:
    """Return the refusal of who names a generation of a group that does not exist."""
    if author.is_transactional or author.version < NOT_FOUND_FROM:
        return KafkaError(ErrorCode.ILLEGAL_GENERATION)
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)


def length_of(text: str) -> int:
    """Return the length that Java gives: what Unicode added later counts twice."""
    return len(text) if text.isascii() else len(text.encode("utf-16-be", "surrogatepass")) // 2


# Fetch.


def fetch(owner: Owner | None, offsets: Offsets, asked: Query) -> Decision[KeyValue, Answers]:
    """Return what the group has committed; a group that does not exist has nothing."""
    if owner is not None:
        owner.check_fetch(asked.member_id, asked.member_epoch)
    committed = offsets.of(asked.group_id)
    topics = all_of(committed) if asked.topics is None else asked.topics
    answers = []
    for topic, topic_id, partitions in topics:
        found = []
        for partition in partitions:
            place = topic, partition
            if asked.require_stable and offsets.is_unstable(asked.group_id, place):
                found.append(Answer(partition, None, ErrorCode.UNSTABLE_OFFSET_COMMIT))
            else:
                found.append(Answer(partition, of_topic(committed.get(place), topic_id)))
        answers.append((topic, found))
    return Decision((), answers)


def all_of(committed: ByPlace) -> list[Wanted]:
    """Return what to ask for to get everything."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(committed):
        by_topic.setdefault(topic, []).append(partition)
    return [Wanted(topic, NO_TOPIC_ID, found) for topic, found in by_topic.items()]


def of_topic(value: OffsetCommitValue | None, topic_id: UUID) -> OffsetCommitValue | None:
    """Return the offset unless it is known to be of another topic of the same name."""
    if value is None or NO_TOPIC_ID in (topic_id, value.topic_id) or value.topic_id == topic_id:
        return value
    return None


# Delete.


def delete(
    owner: Owner | None, offsets: Offsets, group_id: str, asked: Sequence[Place]
) -> Decision[KeyValue, list[ErrorCode]]:
    """Delete the offsets, all but those of topics that members read; a code for each."""
    if owner is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
    owner.check_delete()
    committed = offsets.of(group_id)
    records, codes = [], []
    for place in asked:
        if owner.reads(place[0]):
            codes.append(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
            continue
        if place in committed or offsets.is_unstable(group_id, place):
            records.append(tombstone(group_id, *place))
        codes.append(ErrorCode.NONE)
    return Decision(tuple(records), codes)


# Clean up.


def expired(
    owner: Owner, offsets: Offsets, group_id: str, *, now_ms: int, retention_ms: int
) -> Iterator[KeyValue]:
    """Yield what deletes the group's offsets that expired, and the group if none is left."""
    is_left = group_id in offsets.open
    for place, value in sorted(offsets.of(group_id).items()):
        if not offsets.is_unstable(group_id, place) and is_expired(
            owner, place[0], value, now_ms - retention_ms, now_ms
        ):
            yield tombstone(group_id, *place)
        else:
            is_left = True
    if not is_left and owner.is_empty():
        yield from owner.tombstones()


def is_expired(
    owner: Owner, topic: str, value: OffsetCommitValue, before_ms: int, now_ms: int
) -> bool:
    """Whether nobody reads by the offset any more, and that for long enough."""
    if owner.reads(topic):
        return False
    since_ms = owner.expires_from(value)
    if since_ms is None:
        return False
    if value.expire_timestamp_ms != NO_TIMESTAMP:
        return value.expire_timestamp_ms <= now_ms
    return since_ms <= before_ms


def of_deleted_topic(offsets: Offsets, name: str, topic_id: UUID) -> Iterator[KeyValue]:
    """Yield what deletes the offsets of a topic that is gone."""
    known = (NO_TOPIC_ID, topic_id)
    for group_id in sorted(offsets.group_ids()):
        found = offsets.of(group_id)
        for place in offsets.places(group_id):
            if place[0] != name:
                continue
            values = [found[place]] if place in found else []
            values += offsets.pending_of(group_id, place)
            if any(value.topic_id in known for value in values):
                yield tombstone(group_id, *place)


def of_missing_topics(
    offsets: Offsets, group_ids: Sequence[str], image: Image
) -> Iterator[KeyValue]:
    """Yield what deletes the offsets of topics that are gone, whenever that was.

    What was committed was of a topic that was there: if it is not, it was deleted. Where a
    transaction may still commit for a topic that is there now, nothing is touched.
    """
    for group_id in group_ids:
        found = offsets.of(group_id)
        for place in offsets.places(group_id):
            values = [found[place]] if place in found else []
            values += offsets.pending_of(group_id, place)
            if values and all(is_missing(place[0], each.topic_id, image) for each in values):
                yield tombstone(group_id, *place)


def is_missing(name: str, topic_id: UUID, image: Image) -> bool:
    """Whether there is no such topic; if its id is not known, none of its name."""
    if topic_id == NO_TOPIC_ID:
        return name not in image.topics_by_name
    return topic_id not in image.topics_by_id


def portion(records: Iterator[KeyValue]) -> tuple[KeyValue, ...]:
    """Return as many records as one decision may write."""
    return tuple(islice(records, RECORDS_MAX))
