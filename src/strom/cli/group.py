"""`strom group`: list, describe, reset and delete consumer groups."""

import sys
import time
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from strom.cli import client
from strom.cli.failure import USED_WRONGLY, Failure, report
from strom.cli.group_reset import ResetOptions, chosen, new_offsets, require_inactive, store
from strom.cli.group_state import NOBODY, OF_CONSUMERS, named, states, word
from strom.cli.lag import Position, assigned, commits, lag_of, lag_text, positions
from strom.cli.options import ReportOptions, examples, noun, taking
from strom.cli.output import console, print_json, print_table

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient, ConsumerGroupDescription

app = noun("List, describe, reset and delete consumer groups.")

#: Not without a pause, and no longer than one looks at it.
WATCH_SECONDS_MIN, WATCH_SECONDS_MAX = 0.2, 86_400.0


class Seen(NamedTuple):
    """A group, and what is known of it beyond its description."""

    group: "ConsumerGroupDescription"
    state: str
    #: Where it stands, if that was asked for.
    positions: list[Position]


class View(StrEnum):
    """What of a group is described."""

    OFFSETS = "offsets"
    MEMBERS = "members"
    STATE = "state"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions(ReportOptions):
    """Which groups to list."""

    state: Annotated[
        list[str],
        typer.Option("--state", metavar="STATE", help="Only groups in this state; repeatable."),
    ] = field(default_factory=list)
    type: Annotated[
        list[str],
        typer.Option("--type", metavar="TYPE", help="Only classic or consumer; repeatable."),
    ] = field(default_factory=list)


@app.command("list", epilog=examples("strom group list", "strom group list --state empty --json"))
@taking(ListOptions)
def list_groups(options: ListOptions) -> None:
    """List the groups; the names alone when the output is not a terminal."""
    from confluent_kafka import ConsumerGroupState, ConsumerGroupType

    by_type = {word(each): each for each in ConsumerGroupType}
    types = {by_type[named(each, by_type, "type")] for each in options.type}
    there_are = (*map(word, ConsumerGroupState), *OF_CONSUMERS)
    wanted = {named(each, there_are, "state") for each in options.state}
    admin = client.admin(options)
    with client.refusals():
        found = admin.list_consumer_groups(types=types).result()
    for error in found.errors:
        raise Failure(client.text_of(error))
    state_of = states(admin, found.valid)
    rows = sorted(
        (each.group_id, word(each.type), state_of[each.group_id])
        for each in found.valid
        if not wanted or state_of[each.group_id] in wanted
    )
    if options.json:
        print_json([dict(zip(("group", "type", "state"), row, strict=True)) for row in rows])
    elif sys.stdout.isatty():
        print_table(("Group", "Type", "State"), rows)
    else:
        print(*(row[0] for row in rows), sep="\n", end="\n" if rows else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeOptions(ReportOptions):
    """Which groups to describe, and what of them."""

    groups: Annotated[
        list[str] | None,
        typer.Argument(metavar="GROUP", show_default=False, help="Default: all."),
    ] = None
    show: Annotated[View, typer.Option("--show", help="What to show of each group.")] = View.OFFSETS
    watch: Annotated[
        float | None,
        typer.Option(
            "--watch",
            min=WATCH_SECONDS_MIN,
            max=WATCH_SECONDS_MAX,
            metavar="SECONDS",
            help="Again and again, until ^C.",
        ),
    ] = None


@app.command(
    epilog=examples(
        "strom group describe flugdaten-alarm",
        "strom group describe flugdaten-alarm --show members",
        "strom group describe --watch 2",
        "strom group describe flugdaten-alarm --json",
    )
)
@taking(DescribeOptions)
def describe(options: DescribeOptions) -> None:
    """Show how far groups are behind, in messages and in time; their members; their state."""
    failure = look(options)
    if options.watch is None:
        if failure is not None:
            raise failure
        return
    while True:
        # The others are watched on: a group of Kafka Connect may be there for weeks.
        if failure is not None:
            report(failure)
        # Who reads it from a pipe sees it now, not when there is enough for a block.
        sys.stdout.flush()
        time.sleep(options.watch)
        try:
            failure = look(options)
        except Failure as error:
            failure = error


def look(options: DescribeOptions) -> Failure | None:
    """Show the groups once; return why some of them are missing, if they are.

    With a client of its own: librdkafka loses its way to a cluster that was gone as a whole.
    """
    admin = client.admin(options)
    needs_positions = options.json or options.show is not View.STATE
    groups, faults = described(admin, options.groups)
    state_of = states(admin, groups)
    found = [
        Seen(
            group,
            state_of[group.group_id],
            positions(admin, options, group) if needs_positions else [],
        )
        for group in groups
    ]
    # Not before: to ask may take seconds, in which the screen would be empty.
    if options.watch is not None and sys.stdout.isatty():
        console().clear()
    show(options, found)
    return Failure("; ".join(faults)) if faults else None


def described(
    admin: "AdminClient", names: list[str] | None
) -> "tuple[list[ConsumerGroupDescription], list[str]]":
    """Return what the cluster says of the groups, and why it says nothing of the others.

    Of all groups one may be missing too: it was there when they were listed.
    """
    from confluent_kafka import ConsumerGroupState, KafkaException

    with client.refusals():
        wanted = names
        if not wanted:
            # Kafka keeps offsets for a group without a name, but describes none.
            listed = admin.list_consumer_groups().result().valid
            wanted = [each.group_id for each in listed if each.group_id]
        if not wanted:
            return [], []
        futures = admin.describe_consumer_groups(sorted(set(wanted)))
    groups: list[ConsumerGroupDescription] = []
    faults = []
    for name, future in sorted(futures.items()):
        try:
            group = future.result()
        except KafkaException as error:
            faults.append(f"group '{name}': {client.text_of(error)}")
            continue
        if group.state != ConsumerGroupState.DEAD:
            groups.append(group)
        elif names:
            faults.append(f"Consumer group '{name}' does not exist.")
    return groups, faults


def show(options: DescribeOptions, groups: list[Seen]) -> None:
    """Print what was asked for of each group."""
    if options.json:
        print_json([as_json(seen) for seen in groups])
        return
    for seen in groups:
        if options.show is View.STATE:
            print_state(seen)
        elif options.show is View.MEMBERS:
            print_members(seen)
        else:
            print_positions(seen)


def as_json(seen: Seen) -> dict[str, object]:
    """Return all that is known of a group."""
    group, state, found = seen
    return {
        "group": group.group_id,
        "type": word(group.type),
        "state": state,
        "assignor": group.partition_assignor or None,
        "coordinator": None if group.coordinator is None else group.coordinator.id,
        "members": [
            {
                "consumer_id": each.member_id,
                "instance_id": each.group_instance_id,
                "host": each.host,
                "client_id": each.client_id,
                "partitions": [f"{one.topic}-{one.partition}" for one in assigned(each)],
                **lag_of(each.member_id, found)._asdict(),
            }
            for each in group.members
        ],
        "offsets": [asdict(each) for each in found],
    }


def print_state(seen: Seen) -> None:
    """Print one line of facts about a group."""
    group = seen.group
    coordinator = group.coordinator
    where = NOBODY if coordinator is None else f"{coordinator.host}:{coordinator.port}"
    columns = ("Group", "Coordinator", "Assignor", "Type", "State", "Members#")
    print_table(
        columns,
        [
            (
                group.group_id,
                where,
                group.partition_assignor or NOBODY,
                word(group.type),
                seen.state,
                len(group.members),
            )
        ],
    )


def print_members(seen: Seen) -> None:
    """Print who is in a group, what each reads, and how far it is behind."""
    group, state, found = seen
    rows = []
    for each in sorted(group.members, key=lambda each: each.member_id):
        behind = lag_of(each.member_id, found)
        rows.append(
            (
                each.member_id,
                each.group_instance_id or NOBODY,
                each.host,
                each.client_id,
                len(assigned(each)),
                known(behind.lag),
                lag_text(behind.lag_ms),
                ", ".join(f"{one.topic}-{one.partition}" for one in assigned(each)) or NOBODY,
            )
        )
    columns = (
        *("Consumer id", "Instance id", "Host", "Client id", "Partitions#"),
        *("Lag#", "Lag in time#", "Assignment"),
    )
    print_table(columns, rows, title=f"{group.group_id} ({state})")


def known(value: object) -> object:
    """Return the value as a table shows it."""
    return NOBODY if value is None else value


def print_positions(seen: Seen) -> None:
    """Print how far a group is behind."""
    group, state, found = seen
    columns = (
        *("Topic", "Partition#", "Current offset#", "Log end offset#", "Lag#", "Lag in time#"),
        *("Consumer id", "Host", "Client id"),
    )
    rows = [
        (
            each.topic,
            each.partition,
            *map(known, (each.current_offset, each.end_offset, each.lag)),
            lag_text(each.lag_ms),
            *map(known, (each.consumer_id, each.host, each.client_id)),
        )
        for each in found
    ]
    print_table(columns, rows, title=f"{group.group_id} ({state})")


@app.command(
    epilog=examples(
        "strom group reset flugdaten-alarm --to beginning",
        "strom group reset flugdaten-alarm -t flugdaten:0,1 --shift -100 --execute",
        "strom group reset flugdaten-alarm -t flugdaten --to 2026-11-16T00:00 --execute",
    )
)
@taking(ResetOptions)
def reset(options: ResetOptions) -> None:
    """Move the stored offsets of a group that has no members; shows what it would do."""
    if (options.to is None) == (options.shift is None):
        raise Failure("say where to: either --to POINT or --shift N", USED_WRONGLY)
    admin = client.admin(options)
    require_inactive(admin, options.group)
    stored = commits(admin, options.group)
    places = chosen(admin, options, stored)
    target = new_offsets(options, places, stored)
    if options.execute:
        store(admin, options.group, target)
    rows = [(*place, stored.offsets.get(place), target[place]) for place in places]
    if options.json:
        keys = ("topic", "partition", "old_offset", "new_offset")
        print_json([dict(zip(keys, row, strict=True)) for row in rows])
        return
    columns = ("Topic", "Partition#", "Old offset#", "New offset#")
    print_table(columns, [tuple(map(known, row)) for row in rows])
    if not options.execute:
        print("Nothing was changed; --execute does it.")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions(ReportOptions):
    """Which groups to delete."""

    groups: Annotated[list[str], typer.Argument(metavar="GROUP", show_default=False)]


@app.command(epilog=examples("strom group delete flugdaten-alarm"))
@taking(DeleteOptions)
def delete(options: DeleteOptions) -> None:
    """Delete groups that have no members, with the offsets that they stored."""
    from confluent_kafka import KafkaException

    admin = client.admin(options)
    with client.refusals():
        futures = admin.delete_consumer_groups(list(dict.fromkeys(options.groups)))
    deleted, refused = [], []
    for name, future in futures.items():
        try:
            future.result()
        except KafkaException as error:
            refused.append(f"{name}: {client.text_of(error)}")
        else:
            deleted.append(name)
            if not options.json:
                print(f"Deleted group {name}.")
    if options.json:
        print_json({"deleted": deleted})
    if refused:
        raise Failure("; ".join(refused))
