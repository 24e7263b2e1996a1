"""What a group needs to know of the topics of the cluster."""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

from strom.metadata.image import Image

#: The hash of no topics.
NO_TOPICS: Final = 0
HASH_BYTES: Final = 8


def metadata_hash(names: Iterable[str], image: Image) -> int:
    """Return a number for the topics of these names that changes when one of them does.

    It counts whether a topic exists, that it is the same one, and how many partitions it has. Kafka
    computes another number: a group that comes from there is assigned anew once.
    """
    by_name = image.topics_by_name
    found = [by_name[name] for name in sorted(names) if name in by_name]
    if not found:
        return NO_TOPICS
    digest = blake2b(digest_size=HASH_BYTES)
    for topic in found:
        digest.update(topic.id.bytes)
        digest.update(len(topic.partitions).to_bytes(4, "big"))
    return int.from_bytes(digest.digest(), "big", signed=True)
