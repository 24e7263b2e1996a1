"""Write docs/configuration.md from the table of the settings.

Run it after a change of the table; a test fails until it has been run.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

from strom.metadata.settings.catalogue import (
    BROKER_SUBJECTS,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    UNITS,
)
from strom.metadata.settings.definition import TYPE_NAMES, USED, Setting

PAGE = Path(__file__).parent.parent / "docs" / "configuration.md"

HEAD = """# Configuration

Strom reads Kafka's `server.properties` and knows every setting of Apache Kafka 4.3 by its name,
type, default and valid values. `--override name=value` on the command line goes before the file.
No setting is required: an empty file starts a single node with `node.id=1` that listens on port
9092. Names that begin with `strom.` are Strom's own.

Three defaults are other ones while the file names no node but this one, neither in
`controller.quorum.voters` nor in `controller.quorum.bootstrap.servers`:
`offsets.topic.replication.factor`, `transaction.state.log.replication.factor` and
`transaction.state.log.min.isr` are then 1. Three replicas would never be in sync, and the first
group or transaction would wait for them.

For a broker setting counts, in this order: what was set at run time for this broker
(`kafka-configs --entity-type brokers --entity-name 1 --alter --add-config …`), what was set at run
time for all brokers (`--entity-default`), the file, the default. A topic's own setting goes before
the broker's.

The column *change* says when a change takes effect: `read-only` with the next start, `per-broker`
at once for one broker, `cluster-wide` at once for one broker or all of them. A change of
`listeners` opens those whose names are new and closes those whose names are gone, with their
connections; one that only has another address moves there with the next start.
`listener.name.<name>.max.connections`, with the name in lower case, is the limit of one listener;
nothing else with such a prefix has an effect.

A setting marked *no effect* is taken, checked and described like the others, but changes nothing,
for the reason that stands there. A name that nobody knows is ignored with a warning that names the
nearest known one. A value that will not do ends the start with one line and exit code 1, before
anything is touched.

From a file for a broker with ZooKeeper: `broker.id` is taken as `node.id`; `zookeeper.connect` and
`broker.id.generation.enable` have no effect and can be removed.
"""


def main() -> None:
    """Write the page."""
    PAGE.write_text(page())


def page() -> str:
    """Return the text of the page."""
    parts = [HEAD, "# Broker settings\n"]
    for subject, settings in BROKER_SUBJECTS.items():
        parts += [f"## {subject}\n", table(settings.values(), "change", lambda each: each.mode)]
    parts += [
        "# Topic settings\n",
        "Where a topic sets nothing of its own, the broker's setting stands in.\n",
        table(TOPIC.values(), "broker's", stand_ins),
        "# Group settings\n",
        "Where a group sets nothing of its own, the broker's setting stands in.\n",
        table(GROUP.values(), "broker's", stand_ins),
        "# Client metrics subscriptions\n",
        table(CLIENT_METRICS.values(), "broker's", stand_ins),
    ]
    return "\n".join(parts)


def table(settings: Iterable[Setting], title: str, column: Callable[[Setting], str]) -> str:
    """Return a table of settings, with one column of its own."""
    lines = [f"| setting | type | default | valid | {title} | |", "|---|---|---|---|---|---|"]
    lines += [
        f"| `{each.name}` | {kind(each)} | {default(each)} | {valid(each)} | {column(each)} "
        f"| {says(each)} |"
        for each in settings
    ]
    return "\n".join(lines) + "\n"


def stand_ins(setting: Setting) -> str:
    """Name the broker settings that stand in for a topic's or a group's."""
    if not setting.stand_in:
        return ""
    names = [name for name, _ in UNITS.get(setting.stand_in, [(setting.stand_in, 1)])]
    return ", ".join(f"`{name}`" for name in names)


def kind(setting: Setting) -> str:
    """Name the type."""
    return TYPE_NAMES[setting.type].lower()


def default(setting: Setting) -> str:
    """Show the default."""
    shown = setting.show(setting.default)
    return "none" if shown is None else f"`{shown}`" if shown else "empty"


def valid(setting: Setting) -> str:
    """Show which values are valid."""
    return str(setting.check or "").replace("|", "\\|")


def says(setting: Setting) -> str:
    """Say what the setting is for, and why it has no effect if it has none."""
    idle = f" *No effect: {setting.accepted}.*" if setting.accepted != USED else ""
    return f"{setting.doc}{idle}"


if __name__ == "__main__":
    main()
