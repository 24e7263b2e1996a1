"""`strom config`: settings of a topic, of one broker, or of all brokers, while they run."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from strom.cli import client, every_broker
from strom.cli.failure import USED_WRONGLY, Failure
from strom.cli.options import ReportOptions, examples, key_values, noun, taking
from strom.cli.output import print_json, print_table
from strom.cli.topic import finished

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient, ConfigEntry, ConfigResource

app = noun("Show and change settings of topics and brokers.")

SOURCES = {
    "UNKNOWN_CONFIG": "unknown",
    "DYNAMIC_TOPIC_CONFIG": "topic",
    "DYNAMIC_BROKER_CONFIG": "this broker",
    "DYNAMIC_DEFAULT_BROKER_CONFIG": "all brokers",
    "STATIC_BROKER_CONFIG": "file",
    "DEFAULT_CONFIG": "default",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityOptions(ReportOptions):
    """Whose settings are meant: exactly one of the three."""

    topic: Annotated[str | None, typer.Option("--topic", "-t", help="Settings of a topic.")] = None
    broker: Annotated[
        str | None, typer.Option("--broker", metavar="ID", help="Settings of one broker.")
    ] = None
    broker_default: Annotated[
        bool, typer.Option("--broker-default", help="Settings of all brokers of the cluster.")
    ] = False


def entity(options: EntityOptions) -> tuple[str, str]:
    """Return the kind and the name of what is meant; a cluster's brokers have the empty name."""
    named = [
        (kind, name)
        for kind, name in (
            ("topic", options.topic),
            ("broker", options.broker),
            ("broker", "" if options.broker_default else None),
        )
        if name is not None
    ]
    if len(named) != 1:
        raise Failure("say whose: one of --topic NAME, --broker ID, --broker-default", USED_WRONGLY)
    return named[0]


def resource(admin: "AdminClient", options: EntityOptions) -> "ConfigResource":
    """Return the topic or broker that is meant, which must be there, as the client wants it."""
    from confluent_kafka.admin import ConfigResource, ResourceType

    kind, name = entity(options)
    if kind == "topic":
        client.partitions_of(admin, name)
        return ConfigResource(ResourceType.TOPIC, name)
    client.require_broker(admin, name)
    return ConfigResource(ResourceType.BROKER, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeOptions(EntityOptions):
    """How much to show."""

    every: Annotated[
        bool, typer.Option("--all", "-a", help="Also what was left at its default.")
    ] = False


@app.command(
    epilog=examples(
        "strom config describe --topic flugdaten",
        "strom config describe --broker 1 --all",
        "strom config describe --broker-default --json",
    )
)
@taking(DescribeOptions)
def describe(options: DescribeOptions) -> None:
    """Show settings, and where each comes from."""
    entity(options)
    if options.broker_default:
        shown = described_defaults(options)
    else:
        shown = [
            described(entry)
            for _, entry in sorted(entries_of(options).items())
            if options.every or not is_inherited(entry, of_topic=options.topic is not None)
        ]
    if options.json:
        print_json(shown)
    else:
        columns = ("Setting", "Value", "From")
        print_table(columns, [(each["name"], each["value"], each["source"]) for each in shown])


def described_defaults(options: EntityOptions) -> list[dict[str, object]]:
    """Return what was set for every broker."""
    entries = every_broker.describe(client.address(options))
    return [
        {
            "name": entry.name,
            "value": "(hidden)" if entry.is_sensitive else entry.value,
            "source": SOURCES["DYNAMIC_DEFAULT_BROKER_CONFIG"],
            "read_only": entry.read_only,
            "sensitive": entry.is_sensitive,
        }
        for entry in sorted(entries, key=lambda entry: entry.name)
    ]


def entries_of(options: EntityOptions) -> "dict[str, ConfigEntry]":
    """Ask for the settings of a topic or of one broker."""
    admin = client.admin(options)
    asked = resource(admin, options)
    with client.refusals():
        (future,) = admin.describe_configs([asked]).values()
        entries: dict[str, ConfigEntry] = future.result()
    return entries


def is_inherited(entry: "ConfigEntry", *, of_topic: bool) -> bool:
    """Whether the value was not set on what is asked about."""
    own = {"DYNAMIC_TOPIC_CONFIG"} if of_topic else set(SOURCES) - {"DEFAULT_CONFIG"}
    return source_name(entry) not in own


def source_name(entry: "ConfigEntry") -> str:
    """Return Kafka's name of where a value comes from."""
    from confluent_kafka.admin import ConfigSource

    return ConfigSource(entry.source).name


def described(entry: "ConfigEntry") -> dict[str, object]:
    """Return what is known about one setting; a password is never shown."""
    return {
        "name": entry.name,
        "value": "(hidden)" if entry.is_sensitive else entry.value,
        "source": SOURCES.get(source_name(entry), source_name(entry)),
        "read_only": entry.is_read_only,
        "sensitive": entry.is_sensitive,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class SetOptions(EntityOptions):
    """What to set."""

    settings: Annotated[list[str], typer.Argument(metavar="KEY=VALUE", show_default=False)]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsetOptions(EntityOptions):
    """What to set back."""

    names: Annotated[list[str], typer.Argument(metavar="KEY", show_default=False)]


@app.command(
    "set",
    epilog=examples(
        "strom config set --topic flugdaten retention.ms=3600000",
        "strom config set --broker-default log.retention.ms=86400000",
    ),
)
@taking(SetOptions)
def set_(options: SetOptions) -> None:
    """Set values; other settings stay as they are."""
    change(options, "SET", key_values(options.settings))


@app.command(epilog=examples("strom config unset --topic flugdaten retention.ms"))
@taking(UnsetOptions)
def unset(options: UnsetOptions) -> None:
    """Go back to the default."""
    change(options, "DELETE", dict.fromkeys(options.names, ""))


@app.command(epilog=examples("strom config append --topic flugdaten cleanup.policy=compact"))
@taking(SetOptions)
def append(options: SetOptions) -> None:
    """Add entries to settings that are lists."""
    change(options, "APPEND", key_values(options.settings))


@app.command(epilog=examples("strom config subtract --topic flugdaten cleanup.policy=delete"))
@taking(SetOptions)
def subtract(options: SetOptions) -> None:
    """Take entries out of settings that are lists."""
    change(options, "SUBTRACT", key_values(options.settings))


def change(options: EntityOptions, operation: str, values: dict[str, str]) -> None:
    """Change settings, all or none."""
    kind, name = entity(options)
    if options.broker_default:
        every_broker.change(client.address(options), operation, values)
    else:
        change_one(options, operation, values)
    if options.json:
        changed = {"entity": kind, "name": name, "operation": operation.lower()}
        print_json(changed | {"settings": values})
    else:
        print(f"Completed updating config for {kind} {name or '(all)'}.")


def change_one(options: EntityOptions, operation: str, values: dict[str, str]) -> None:
    """Change settings of a topic or of one broker."""
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry

    admin = client.admin(options)
    asked = resource(admin, options)
    for name, value in values.items():
        asked.add_incremental_config(
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType[operation])
        )
    with client.refusals():
        (future,) = admin.incremental_alter_configs([asked]).values()
    finished(future)
