"""What one task of a read is, apart from how it is read: it is planned where nothing is read."""

from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from strom.spark.places import Place

if TYPE_CHECKING:
    from strom.spark.link import Address


class Task(NamedTuple):
    """What to read: offsets of a partition, of the topic with this id."""

    place: Place
    topic_id: UUID
    start: int
    end: int
    leader: "Address | None"

    def __str__(self) -> str:
        topic, number = self.place
        return f"{topic}-{number}"
