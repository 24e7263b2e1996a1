"""`strom topic`: create, list, describe, alter, delete topics; work out how large one must be."""

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from strom.cli import client, sizing
from strom.cli.failure import USED_WRONGLY, Failure
from strom.cli.options import (
    INT16_MAX,
    INT32_MAX,
    OptionalTopics,
    ReportOptions,
    Topic,
    Topics,
    examples,
    key_values,
    noun,
    taking,
)
from strom.cli.output import print_json, print_table
from strom.cli.quantity import read_size, size_text

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient, TopicDescription

app = noun("Create, list, describe, alter and delete topics.")

#: A thousand years.
DAYS_MAX = 366_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateOptions(ReportOptions):
    """What a new topic is to be like."""

    topics: Annotated[list[str], typer.Argument(metavar="TOPIC", show_default=False)]
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions",
            "-n",
            min=1,
            max=INT32_MAX,
            help="Default: the broker's num.partitions.",
        ),
    ] = None
    replication_factor: Annotated[
        int | None,
        typer.Option("--replication-factor", "-r", min=1, max=INT16_MAX, help="Copies of each."),
    ] = None
    config: Annotated[
        list[str],
        typer.Option("--config", "-c", metavar="KEY=VALUE", help="Topic setting; repeatable."),
    ] = field(default_factory=list)
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Say nothing if it is there already.")
    ] = False
    validate_only: Annotated[
        bool, typer.Option("--validate-only", help="Check, but create nothing.")
    ] = False


@app.command(
    epilog=examples(
        "strom topic create flugdaten --partitions 3",
        "strom topic create events -n 12 -r 3 --config retention.ms=604800000",
        "strom topic create users --config cleanup.policy=compact",
    )
)
@taking(CreateOptions)
def create(options: CreateOptions) -> None:
    """Create topics."""
    from confluent_kafka.admin import NewTopic

    config = key_values(options.config)
    admin = client.admin(options)
    asked = [
        NewTopic(
            name,
            num_partitions=options.partitions or -1,
            replication_factor=options.replication_factor or -1,
            config=config,
        )
        for name in options.topics
    ]
    with client.refusals():
        futures = admin.create_topics(asked, validate_only=options.validate_only)
    ignore = "TOPIC_ALREADY_EXISTS" if options.if_not_exists else None
    report_each(options, "valid" if options.validate_only else "created", futures, ignore=ignore)


def report_each(
    options: ReportOptions, what: str, futures: Mapping[str, object], *, ignore: str | None = None
) -> None:
    """Tell what became of each topic: one that is refused leaves the others done."""
    done, refused = [], []
    for name, future in futures.items():
        try:
            if not finished(future, ignore=ignore):
                continue
        except Failure as failure:
            refused.append(str(failure))
            continue
        done.append(name)
        if not options.json:
            print(f"{what.capitalize()} topic {name}.")
    if options.json:
        print_json({what: done})
    if refused:
        raise Failure("; ".join(refused))


def finished(future: object, *, ignore: str | None = None) -> bool:
    """Wait for one topic's answer; False if the cluster refused for the reason to ignore."""
    from confluent_kafka import KafkaException

    try:
        future.result()  # type: ignore[attr-defined]
    except KafkaException as error:
        if ignore is not None and error.args[0].name() == ignore:
            return False
        raise Failure(client.text_of(error)) from None
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions(ReportOptions):
    """Which topics to list."""

    internal: Annotated[
        bool, typer.Option("--internal/--no-internal", help="Include internal topics.")
    ] = True


@app.command("list", epilog=examples("strom topic list", "strom topic list --no-internal --json"))
@taking(ListOptions)
def list_topics(options: ListOptions) -> None:
    """List the topics; the names alone when the output is not a terminal."""
    topics = client.metadata(client.admin(options)).topics
    names = sorted(name for name in topics if options.internal or not name.startswith("__"))
    rows = [(name, len(topics[name].partitions), copies(topics[name])) for name in names]
    if options.json:
        keys = ("name", "partitions", "replication_factor")
        print_json([dict(zip(keys, row, strict=True)) for row in rows])
    elif sys.stdout.isatty():
        print_table(("Topic", "Partitions#", "Copies#"), rows)
    else:
        print(*names, sep="\n", end="\n" if names else "")


def copies(topic: object) -> int:
    """Return the replication factor of a topic's metadata."""
    partitions = topic.partitions  # type: ignore[attr-defined]
    return max((len(each.replicas) for each in partitions.values()), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeOptions(ReportOptions):
    """Which topics to describe."""

    topics: OptionalTopics = None
    under_replicated: Annotated[
        bool,
        typer.Option("--under-replicated-partitions", help="Only partitions that lack a copy."),
    ] = False


@dataclass(frozen=True, slots=True)
class DescribedPartition:
    """Who keeps a partition, by broker id."""

    partition: int
    leader: int | None
    replicas: list[int]
    isr: list[int]


@dataclass(frozen=True, slots=True)
class Described:
    """All that is said about one topic."""

    name: str
    id: str
    partition_count: int
    replication_factor: int
    configs: dict[str, str]
    partitions: list[DescribedPartition]


@app.command(epilog=examples("strom topic describe flugdaten", "strom topic describe --json"))
@taking(DescribeOptions)
def describe(options: DescribeOptions) -> None:
    """Show partitions, leaders, replicas and settings of topics."""
    admin = client.admin(options)
    known = client.metadata(admin).topics
    for name in options.topics or ():
        if name not in known:
            raise client.unknown_topic(name, known)
    names = options.topics or sorted(known)
    described = [described_topic(admin, name, options) for name in names]
    if options.json:
        print_json([asdict(each) for each in described])
        return
    for topic in described:
        print_description(topic)
    if options.topics and sys.stdout.isatty():
        print_offsets(admin, described)


def described_topic(admin: "AdminClient", name: str, options: DescribeOptions) -> Described:
    """Return all that is said about one topic."""
    from confluent_kafka import TopicCollection

    with client.refusals():
        (future,) = admin.describe_topics(TopicCollection([name])).values()
        topic: TopicDescription = future.result()
    return Described(
        name=name,
        # librdkafka writes ids in the other alphabet of base64 than Kafka's own tools.
        id=str(topic.topic_id).replace("+", "-").replace("/", "_"),
        partition_count=len(topic.partitions),
        replication_factor=max((len(each.replicas) for each in topic.partitions), default=0),
        configs=overridden(admin, name),
        partitions=[
            DescribedPartition(
                each.id,
                None if each.leader is None else each.leader.id,
                [node.id for node in each.replicas],
                [node.id for node in each.isr],
            )
            for each in topic.partitions
            if not options.under_replicated or len(each.isr) < len(each.replicas)
        ],
    )


def overridden(admin: "AdminClient", topic: str) -> dict[str, str]:
    """Return the settings that were made for the topic itself."""
    from confluent_kafka.admin import (
        ConfigResource,
        ConfigSource,
        ResourceType,
    )

    with client.refusals():
        resource = ConfigResource(ResourceType.TOPIC, topic)
        (future,) = admin.describe_configs([resource]).values()
        entries = future.result()
    wanted = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    return {name: entry.value for name, entry in sorted(entries.items()) if entry.source == wanted}


def print_description(topic: Described) -> None:
    """Print a topic as Kafka's own tool does."""
    print(
        f"Topic: {topic.name}",
        f"TopicId: {topic.id}",
        f"PartitionCount: {topic.partition_count}",
        f"ReplicationFactor: {topic.replication_factor}",
        f"Configs: {','.join(f'{key}={value}' for key, value in topic.configs.items())}",
        sep="\t",
    )
    for each in topic.partitions:
        print(
            f"\tTopic: {topic.name}",
            f"Partition: {each.partition}",
            f"Leader: {'none' if each.leader is None else each.leader}",
            f"Replicas: {','.join(map(str, each.replicas))}",
            f"Isr: {','.join(map(str, each.isr))}",
            sep="\t",
        )


def print_offsets(admin: "AdminClient", described: list[Described]) -> None:
    """Print a table of what each partition holds."""
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import OffsetSpec

    places = [(topic.name, each.partition) for topic in described for each in topic.partitions]
    asked = [TopicPartition(*place) for place in places]
    with client.refusals():
        starts, ends = (
            admin.list_offsets(dict.fromkeys(asked, spec))
            for spec in (OffsetSpec.earliest(), OffsetSpec.latest())  # type: ignore[no-untyped-call]
        )
        rows = [
            (
                *place,
                start := starts[key].result().offset,
                end := ends[key].result().offset,
                end - start,
            )
            for place, key in zip(places, asked, strict=True)
        ]
    print_table(("Topic", "Partition#", "Start offset#", "End offset#", "Offsets#"), rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterOptions(ReportOptions):
    """What a topic is to become."""

    topic: Topic
    partitions: Annotated[
        int,
        typer.Option(
            "--partitions",
            "-n",
            min=1,
            max=INT32_MAX,
            help="The new number; only more, not fewer.",
        ),
    ]


@app.command(epilog=examples("strom topic alter flugdaten --partitions 6"))
@taking(AlterOptions)
def alter(options: AlterOptions) -> None:
    """Add partitions. Records with the same key may then go to another partition than before."""
    from confluent_kafka.admin import NewPartitions

    admin = client.admin(options)
    client.partitions_of(admin, options.topic)
    with client.refusals():
        futures = admin.create_partitions([NewPartitions(options.topic, options.partitions)])
    finished(futures[options.topic])
    if options.json:
        print_json({"topic": options.topic, "partitions": options.partitions})
    else:
        print(f"Topic {options.topic} now has {options.partitions} partitions.")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions(ReportOptions):
    """Which topics to delete."""

    topics: Topics
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="Say nothing if it is not there.")
    ] = False


@app.command(epilog=examples("strom topic delete flugdaten"))
@taking(DeleteOptions)
def delete(options: DeleteOptions) -> None:
    """Delete topics and all their records."""
    admin = client.admin(options)
    known = client.metadata(admin).topics
    for name in options.topics:
        if name not in known and not options.if_exists:
            raise client.unknown_topic(name, known)
    there = [name for name in options.topics if name in known]
    with client.refusals():
        futures = admin.delete_topics(there) if there else {}
    report_each(options, "deleted", futures)


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeOptions:
    """What is known about the load."""

    throughput: Annotated[
        str | None, typer.Option("--throughput", "-t", help="Wanted per second, e.g. 100MB.")
    ] = None
    per_producer: Annotated[
        str, typer.Option(help="What one producer brings into one partition per second.")
    ] = "10MB"
    per_consumer: Annotated[
        str, typer.Option(help="What one consumer takes from one partition per second.")
    ] = "10MB"
    per_day: Annotated[str | None, typer.Option(help="Data that arrives a day, e.g. 1TB.")] = None
    days: Annotated[float, typer.Option(min=0, max=DAYS_MAX, help="How long it is kept.")] = 7
    replication_factor: Annotated[
        int, typer.Option("--replication-factor", "-r", min=1, max=INT16_MAX)
    ] = 3
    disk: Annotated[str, typer.Option(help="Disk of one broker.")] = "2TB"
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False


@app.command(
    epilog=examples(
        "strom topic size",
        "strom topic size --throughput 100MB --per-producer 20MB --per-consumer 5MB",
        "strom topic size --per-day 1TB --days 7 --replication-factor 3 --disk 2TB",
    )
)
@taking(SizeOptions)
def size(options: SizeOptions) -> None:
    """Work out partitions from throughput, and brokers from data volume."""
    try:
        answer = worked_out(options)
    except ValueError as error:
        raise Failure(str(error), USED_WRONGLY) from None
    if options.json:
        print_json(answer)
        return
    partitions = answer["partitions"]
    assert isinstance(partitions, int)
    shared = ", ".join(map(str, sizing.divisors(partitions)))
    print(f"partitions: {partitions}  (shared evenly by {shared} consumers)")
    if "brokers" in answer:
        print(
            f"brokers:    {answer['brokers']}  ({answer['disk_total']} on disks of {options.disk})"
        )


def worked_out(options: SizeOptions) -> dict[str, object]:
    """Apply both rules to what is known."""
    answer: dict[str, object] = {"partitions": sizing.DEFAULT_PARTITIONS}
    if options.throughput is not None:
        needed = sizing.partitions_needed(
            read_size(options.throughput),
            read_positive(options.per_producer),
            read_positive(options.per_consumer),
        )
        if needed > INT32_MAX:
            raise ValueError(f"that is {needed} partitions: no topic has so many")
        answer = {"partitions": sizing.well_divisible(needed), "partitions_at_least": needed}
    if options.per_day is not None:
        volume = sizing.Volume(read_size(options.per_day), options.days, options.replication_factor)
        answer["disk_total_bytes"] = volume.total_bytes
        answer["disk_total"] = size_text(volume.total_bytes)
        answer["brokers"] = sizing.brokers_needed(volume, read_positive(options.disk))
    return answer


def read_positive(text: str) -> float:
    """Read a size that something will be divided by."""
    value = read_size(text)
    if not value:
        raise ValueError(f"{text!r} must be more than nothing")
    return value
