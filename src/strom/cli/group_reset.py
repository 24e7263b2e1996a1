"""Where a group is to go on: which partitions are meant, and which offset is stored for each.

An offset is kept within what the partition holds, up to its end: an open transaction does not hold
a group back. What an exactly-once Spark write has stored is the number of a batch, and stays as it
is: moved, the write would leave batches out or write them twice.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from strom.cli import client
from strom.cli.failure import USED_WRONGLY, Failure
from strom.cli.group_state import states
from strom.cli.lag import Place, Stored
from strom.cli.options import ReportOptions
from strom.cli.span import Bounds, Kind, offset_of, read_point

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient, ConsumerGroupDescription

#: TOPIC:0,1,2. Nothing but the digits that everybody can read: Python would also take 1_0.
_PLACES = re.compile(r"([^:]*)(?::([0-9]{1,10}(?:,[0-9]{1,10})*))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetOptions(ReportOptions):
    """Where a group is to go on."""

    group: Annotated[str, typer.Argument(metavar="GROUP", show_default=False)]
    topics: Annotated[
        list[str],
        typer.Option(
            "--topic",
            "-t",
            metavar="TOPIC[:P,…]",
            help="A topic, or some partitions of it; repeatable.  [default: all that it stored]",
        ),
    ] = field(default_factory=list)
    to: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="POINT", help="beginning, end, an offset, -N, a time, or @MS."
        ),
    ] = None
    shift: Annotated[
        int | None,
        typer.Option("--shift", metavar="N", help="So many on; less than 0: back."),
    ] = None
    execute: Annotated[
        bool, typer.Option("--execute", help="Do it; otherwise it is only shown.")
    ] = False


def require_inactive(admin: "AdminClient", name: str) -> None:
    """Fail if the group has members: they would go on from where they are."""
    with client.refusals():
        (future,) = admin.describe_consumer_groups([name]).values()
        group: ConsumerGroupDescription = future.result()
    if group.members:
        state = states(admin, [group])[name]
        raise Failure(
            f"group '{name}' has {len(group.members)} members and is {state}: "
            "offsets can only be reset while nobody reads; stop the consumers first"
        )


def chosen(admin: "AdminClient", options: ResetOptions, stored: Stored) -> list[Place]:
    """Return the partitions that are meant."""
    group = options.group
    if options.topics:
        places = named_places(admin, options.topics)
        if marked := [place for place in places if place in stored.markers]:
            topic, partition = marked[0]
            raise Failure(
                f"what group '{group}' has stored of {topic}-{partition} is no offset: an "
                "exactly-once Spark write keeps the number of its last batch there; leave it out"
            )
        return places
    if stored.offsets:
        return sorted(stored.offsets)
    if stored.markers:
        raise Failure(
            f"group '{group}' has stored no offsets, only the markers of exactly-once Spark "
            "writes, which are not reset"
        )
    raise Failure(f"group '{group}' has stored no offsets: name the topics with --topic")


def named_places(admin: "AdminClient", texts: Iterable[str]) -> list[Place]:
    """Return the partitions that a user names."""
    places: set[Place] = set()
    for text in texts:
        match = _PLACES.fullmatch(text)
        if match is None:
            raise Failure(f"{text!r}: write TOPIC or TOPIC:0,1,2", USED_WRONGLY)
        topic, numbers = match.groups()
        there = client.partitions_of(admin, topic)
        wanted = there if numbers is None else [int(each) for each in numbers.split(",")]
        missing = sorted(set(wanted) - set(there))
        if missing:
            raise Failure(f"topic '{topic}' has no partition {missing[0]}")
        places.update((topic, each) for each in wanted)
    return sorted(places)


def new_offsets(options: ResetOptions, places: list[Place], stored: Stored) -> dict[Place, int]:
    """Return the offset to store for each partition, within what the partition holds."""
    from confluent_kafka import TopicPartition

    try:
        point = None if options.to is None else read_point(options.to)
    except ValueError as error:
        raise Failure(str(error), USED_WRONGLY) from None
    # Read committed, a partition would seem to end where the first open transaction begins.
    reader = client.consumer(options, {"isolation.level": "read_uncommitted"})
    try:
        found = {}
        for place in places:
            bounds = Bounds(*client.watermarks(reader, TopicPartition(*place)))
            if point is None:
                offset = shifted(options, place, stored)
            else:
                at_time = None
                if point.kind is Kind.TIME:
                    at_time = client.offset_of_time(reader, place, point.number)
                offset = offset_of(point, bounds, at_time)
            found[place] = min(max(offset, bounds.start_offset), bounds.end_offset)
        return found
    finally:
        reader.close()


def shifted(options: ResetOptions, place: Place, stored: Stored) -> int:
    """Return the stored offset, moved."""
    offset = stored.offsets.get(place)
    if offset is None:
        raise Failure(f"group '{options.group}' has stored no offset of {place[0]}-{place[1]}")
    return offset + (options.shift or 0)


def store(admin: "AdminClient", group: str, target: dict[Place, int]) -> None:
    """Store the offsets; the cluster refuses while the group has members."""
    from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

    asked = [TopicPartition(*place, offset) for place, offset in target.items()]
    with client.refusals():
        (future,) = admin.alter_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group, asked)]
        ).values()
        for each in future.result().topic_partitions:
            if each.error is not None:
                raise Failure(f"{each.topic}-{each.partition}: {client.text_of(each.error)}")
