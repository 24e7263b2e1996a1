"""What became of the partitions between two points of a stream: where to go on, what is lost.

A topic may be deleted, or deleted and made anew under its name, while a query runs or while it
rests; partitions may be added. What was not read of a topic that is gone is lost, and told; what
is new is read from its beginning.
"""

from collections.abc import Callable, Mapping, Set
from uuid import UUID

from strom.spark.places import Place, Progress, name_places

#: Called with words for what is lost.
OnLoss = Callable[[str], None]


def fresh_places(before: Progress, places: Set[Place], ids: Mapping[str, UUID]) -> set[Place]:
    """Return the partitions of which nothing was read yet: new, or of a topic that is new."""
    return {
        (topic, number)
        for topic, number in places
        if (topic, number) not in before.offsets
        or before.ids.get(topic, ids.get(topic)) != ids.get(topic)
    }


def starts(
    before: Progress, after: Progress, ids: Mapping[str, UUID], earliest: Mapping[Place, int]
) -> dict[Place, int]:
    """Return where each partition is read from; `earliest` says it for those that are fresh."""
    fresh = fresh_places(before, after.offsets.keys(), ids)
    known = {place: at for place, at in before.offsets.items() if place not in fresh}
    return {
        place: at
        for place, at in (known | dict(earliest)).items()
        if place in after.offsets and _is_same(after, place[0], ids)
    }


def tell_losses(
    before: Progress,
    after: Progress,
    ids: Mapping[str, UUID],
    start: Mapping[Place, int],
    lose: OnLoss,
) -> None:
    """Tell of all that a batch from `before` to `after` should have read and cannot."""
    gone = {topic for topic, _ in after.offsets if not _is_same(after, topic, ids)}
    left = before.offsets.keys() - after.offsets.keys()
    gone |= {topic for topic, _ in left if topic not in ids}
    if gone:
        lose(
            f"Topic {', '.join(sorted(gone))} was deleted, or is not subscribed to any more, "
            "before all of it was read"
        )
    anew = {topic for topic, old in before.ids.items() if ids.get(topic, old) != old} - gone
    if anew:
        lose(
            f"Topic {', '.join(sorted(anew))} was deleted and made anew; "
            "what was not read of the old one is gone"
        )
    dropped = {place for place in left if place[0] not in gone | anew}
    if dropped:
        lose(f"Partition {name_places(dropped)} is not assigned any more")
    missing = {place for place in after.offsets.keys() - start.keys() if place[0] not in gone}
    if missing:
        lose(f"Partition {name_places(missing)} was deleted before it was read")
    stayed = {place: at for place, at in start.items() if place[0] not in anew | gone}
    _tell_ends(before, after, stayed, lose)


def _tell_ends(before: Progress, after: Progress, start: Mapping[Place, int], lose: OnLoss) -> None:
    """Tell of partitions that begin too late, or end too early."""
    for place, at in sorted(start.items()):
        if place not in before.offsets and at > 0:
            lose(f"New partition {name_places({place})} begins at {at}, not at 0")
        elif after.offsets[place] < at:
            lose(
                f"Partition {name_places({place})} ends at {after.offsets[place]}, "
                f"although it was read up to {at}"
            )


def _is_same(after: Progress, topic: str, ids: Mapping[str, UUID]) -> bool:
    """Tell whether the topic is there, and the one that the batch was planned for."""
    return topic in ids and after.ids.get(topic, ids[topic]) == ids[topic]
