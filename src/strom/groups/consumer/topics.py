"""What a group needs to know of the topics of the cluster."""

from collections.abc import Iterable, Mapping
from hashlib import blake2b

from strom.metadata.image import Image, Topic

#: The hash of no topics.
NO_TOPICS = 0
HASH_BYTES = 8


def racks_of(topic: Topic, racks: Mapping[int, str]) -> list[list[str]]:
    """Return the racks of each partition's replicas, given those of the brokers."""
    return [
        sorted(racks[each] for each in topic.partitions[index].replicas if each in racks)
        for index in sorted(topic.partitions)
    ]


def metadata_hash(names: Iterable[str], image: Image) -> int:
    """Return a number for the topics of these names that changes when one of them does.

    It counts whether a topic exists, that it is the same one, how many partitions it has, and in
    which racks these are (KIP-1101). Kafka computes another number: a group that comes from there
    is assigned anew once.
    """
    by_name = image.topics_by_name
    found = [by_name[name] for name in sorted(names) if name in by_name]
    if not found:
        return NO_TOPICS
    racks = {id_: each.rack for id_, each in image.brokers.items() if each.rack is not None}
    digest = blake2b(digest_size=HASH_BYTES)
    for topic in found:
        digest.update(topic.id.bytes)
        digest.update(len(topic.partitions).to_bytes(4, "big"))
        if racks:
            digest.update(repr(racks_of(topic, racks)).encode())
    return int.from_bytes(digest.digest(), "big", signed=True)
