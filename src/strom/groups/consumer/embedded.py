"""What consumers of the classic protocol tell each other, inside of what the broker passes on.

    subscription, assignment = version int16 | body

In a consumer group the broker itself is the leader of such members: it reads their subscriptions
and writes their assignments. A version that is newer than known is read as the newest that is.
"""

from strom.groups.consumer.assignors.subscriber import Partitions
from strom.groups.consumer.member import by_topic
from strom.metadata.image import Image
from strom.wire.messages import read_message, write_message
from strom.wire.primitives import INT16, MalformedFrame
from strom.wire.schema import NEVER, message, of

#: What a group's protocol type must be for its members to speak this.
CONSUMER = "consumer"
NEWEST = 3


@message(newest=NEWEST, flexible_since=NEVER)
class TopicPartition:
    """Partitions of a topic."""

    topic: str = of("string")
    partitions: tuple[int, ...] = of("int32")


@message(newest=NEWEST, flexible_since=NEVER)
class Subscription:
    """What a member wants, and what it holds."""

    topics: tuple[str, ...] = of("string")
    user_data: bytes | None = of("bytes")
    owned_partitions: tuple[TopicPartition, ...] = of("struct", since=1, default=())
    generation_id: int = of("int32", since=2, default=-1)
    rack_id: str | None = of("string", since=3, default=None)


@message(newest=NEWEST, flexible_since=NEVER)
class Assignment:
    """What a member gets."""

    assigned_partitions: tuple[TopicPartition, ...] = of("struct")
    user_data: bytes | None = of("bytes")


def read_version(data: bytes) -> int:
    """Return the version that the member speaks."""
    if len(data) < INT16.size:
        raise MalformedFrame("there is no version")
    version: int = INT16.unpack_from(data)[0]
    if version < 0:
        raise MalformedFrame(f"{version} is no version")
    return min(version, NEWEST)


def read_subscription(data: bytes) -> Subscription:
    """Read what a member wants; raise MalformedFrame if that is something else."""
    found: Subscription = read_message(Subscription, read_version(data), data, INT16.size)
    return found


def read_assignment(data: bytes) -> Assignment:
    """Read what a member got; raise MalformedFrame if that is something else."""
    found: Assignment = read_message(Assignment, read_version(data), data, INT16.size)
    return found


def write_assignment(target: Partitions, version: int, image: Image) -> bytes:
    """Write what a member gets, in the version that it speaks, without topics that are gone."""
    names = {
        image.topics_by_id[topic].name: partitions
        for topic, partitions in target.items()
        if topic in image.topics_by_id
    }
    body = Assignment(
        assigned_partitions=tuple(
            TopicPartition(topic=name, partitions=tuple(sorted(names[name])))
            for name in sorted(names)
        ),
        user_data=None,
    )
    return INT16.pack(version) + write_message(body, version)


def partitions_in(found: tuple[TopicPartition, ...], image: Image) -> Partitions:
    """Return the partitions by the ids of their topics, without topics that are gone."""
    by_name = image.topics_by_name
    return by_topic(
        (by_name[each.topic].id, each.partitions) for each in found if each.topic in by_name
    )
