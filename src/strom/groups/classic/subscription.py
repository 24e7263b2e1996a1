"""What the coordinator looks into of what consumers tell their leader: the topics that they read.

    subscription = version int16 | topics: array of string | …

Every later version begins like this. Only groups of the type "consumer" are looked into, and
one whose members say something else is left alone.
"""

import struct

from strom.groups.classic.group import ClassicGroup
from strom.wire.primitives import INT16, MalformedFrame, read_count, read_text

CONSUMER = "consumer"


def subscribed_topics(group: ClassicGroup) -> frozenset[str] | None:
    """Return the topics that the members read, or None if the coordinator cannot know."""
    if group.protocol_type != CONSUMER:
        return None
    topics: set[str] = set()
    for member in group.members.values():
        try:
            topics.update(read_topics(member.metadata(group.protocol)))
        except MalformedFrame:
            return None
    return frozenset(topics)


def reads(group: ClassicGroup, topic: str) -> bool:
    """Say whether members read the topic, as far as can be known; a consumer group may read any."""
    topics = subscribed_topics(group)
    return group.protocol_type == CONSUMER if topics is None else topic in topics


def read_topics(subscription: bytes) -> list[str]:
    """Read the topics of a consumer's subscription."""
    topics: list[str] = []
    try:
        count, position = read_count(subscription, INT16.size, flexible=False)
        for _ in range(count):
            topic, position = read_text(subscription, position, flexible=False)
            topics.append(topic)
    except (struct.error, UnicodeDecodeError) as error:
        raise MalformedFrame("not a subscription") from error
    return topics
