"""How far a group is behind, partition by partition: in messages, and in time.

The lag in messages is what lies between the stored offset, which is the next to be read, and the
end. The lag in time is the age of that next record; reading it is the only way to know, so one
record of each partition that lags is fetched. A record of an open transaction counts, though nobody
may read it yet; where only the mark of a transaction is left there is no record, and no age, and
neither has a record age that was written without a time.
"""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from strom.cli import client
from strom.cli.group_state import NOBODY
from strom.cli.options import ClientOptions
from strom.spark.marker import MARKER_METADATA

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient, ConsumerGroupDescription, MemberDescription

#: Topic and partition.
Place = tuple[str, int]
#: How long to wait for the records whose age is asked for.
AGE_SECONDS_MAX = 3.0
#: Also what is not committed, and word of the end where there is no record before it.
READING = {
    "auto.offset.reset": "earliest",
    "isolation.level": "read_uncommitted",
    "enable.partition.eof": True,
}


@dataclass(frozen=True, slots=True)
class Position:
    """Where a group stands in one partition; None where nobody knows."""

    topic: str
    partition: int
    current_offset: int | None
    end_offset: int | None
    lag: int | None
    lag_ms: int | None
    consumer_id: str | None
    host: str | None
    client_id: str | None


class Stored(NamedTuple):
    """What a group has stored."""

    #: None where somebody stored a number below 0, which a broker takes and nobody can read from.
    offsets: dict[Place, int | None]
    #: Numbers of batches of exactly-once Spark writes: no offsets, although they are stored so.
    markers: dict[Place, int]


class Behind(NamedTuple):
    """How far a member is behind: messages in all, and the age of the oldest to be read."""

    lag: int | None
    lag_ms: int | None


def positions(
    admin: "AdminClient", options: ClientOptions, group: "ConsumerGroupDescription"
) -> list[Position]:
    """Return where the group stands, for what it has stored and for what its members read."""
    stored = commits(admin, group.group_id)
    owners = {place_of(each): member for member in group.members for each in assigned(member)}
    places = sorted(stored.offsets.keys() | stored.markers.keys() | owners.keys())
    ends = end_offsets(admin, places)
    # What is no offset is not behind.
    read = {place: offset for place, offset in stored.offsets.items() if offset is not None}
    lags = {place: max(end - read[place], 0) for place, end in ends.items() if place in read}
    ages = ages_ms(options, {place: read[place] for place, lag in lags.items() if lag})
    return [
        Position(
            *place,
            stored.markers.get(place, read.get(place)),
            ends.get(place),
            lags.get(place),
            0 if lags.get(place) == 0 else ages.get(place),
            *owner_of(owners.get(place)),
        )
        for place in places
    ]


def assigned(member: "MemberDescription") -> "list[TopicPartition]":
    """Return the partitions of a member; one that is just joining has none."""
    return member.assignment.topic_partitions if member.assignment is not None else []


def owner_of(member: "MemberDescription | None") -> tuple[str | None, str | None, str | None]:
    """Return id, host and client id of who reads a partition, None where nobody does."""
    if member is None:
        return None, None, None
    return member.member_id, member.host, member.client_id


def is_marker(committed: "TopicPartition") -> bool:
    """Whether what is stored is no offset; confluent-kafka may read metadata beyond its end."""
    return (committed.metadata or "").startswith(MARKER_METADATA)


def place_of(partition: "TopicPartition") -> Place:
    """Return which partition is meant."""
    return partition.topic, partition.partition


def commits(admin: "AdminClient", group: str) -> Stored:
    """Return what the group has stored."""
    from confluent_kafka import ConsumerGroupTopicPartitions

    with client.refusals():
        (future,) = admin.list_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group)]
        ).values()
        found: ConsumerGroupTopicPartitions = future.result()
    stored = Stored({}, {})
    for each in found.topic_partitions or ():
        if is_marker(each):
            stored.markers[place_of(each)] = each.offset
        else:
            stored.offsets[place_of(each)] = each.offset if each.offset >= 0 else None
    return stored


def end_offsets(admin: "AdminClient", places: list[Place]) -> dict[Place, int]:
    """Return the end of each partition that can be asked."""
    from confluent_kafka import KafkaException, TopicPartition
    from confluent_kafka.admin import OffsetSpec

    # A classic group's leader may assign anything; the library asks for none of it then.
    real = [(topic, partition) for topic, partition in places if topic and partition >= 0]
    if not real:
        return {}
    asked = {TopicPartition(*place): OffsetSpec.latest() for place in real}  # type: ignore[no-untyped-call]
    ends = {}
    with client.refusals():
        futures = admin.list_offsets(asked)
    for partition, future in futures.items():
        try:
            ends[partition.topic, partition.partition] = future.result().offset
        except KafkaException:
            # Offsets outlive a topic for a while; its end is what nobody knows any more.
            continue
    return ends


def ages_ms(options: ClientOptions, offsets: dict[Place, int]) -> dict[Place, int]:
    """Return how old the next record from each offset on is, as far as they come in time."""
    from confluent_kafka import KafkaError, TopicPartition

    if not offsets:
        return {}
    ages: dict[Place, int] = {}
    #: Those that need not be waited for any more.
    answered: set[Place] = set()
    reader = client.consumer(options, READING)
    try:
        with client.refusals():
            reader.assign([TopicPartition(*place, offset) for place, offset in offsets.items()])
        deadline = time.perf_counter() + AGE_SECONDS_MAX
        while len(answered) < len(offsets) and time.perf_counter() < deadline:
            message = reader.poll(0.1)
            if message is None:
                continue
            error = message.error()
            place = (message.topic() or "", message.partition() or 0)
            if place in answered or (error and error.code() != KafkaError._PARTITION_EOF):
                continue
            answered.add(place)
            if error is None:
                reader.pause([TopicPartition(*place)])
                written_ms = message.timestamp()[1]
                # A producer may leave the time out.
                if written_ms >= 0:
                    ages[place] = max(time.time_ns() // 1_000_000 - written_ms, 0)
    finally:
        reader.close()
    return ages


def lag_of(member_id: str, found: list[Position]) -> Behind:
    """Return how far a member is behind, in all that it reads and has stored offsets of."""
    own = [each for each in found if each.consumer_id == member_id]
    lags = [each.lag for each in own if each.lag is not None]
    return Behind(
        sum(lags) if lags else None,
        max((each.lag_ms for each in own if each.lag_ms is not None), default=None),
    )


def lag_text(lag_ms: int | None) -> str:
    """Return a lag in time as one reads it: 350 ms, 12 s, 3 min, 5 h, 2 d."""
    if lag_ms is None:
        return NOBODY
    for unit, size_ms in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000)):
        if lag_ms >= 2 * size_ms:
            return f"{lag_ms // size_ms} {unit}"
    return f"{lag_ms} ms"
