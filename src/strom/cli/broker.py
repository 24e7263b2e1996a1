"""`strom broker start`: a broker with the settings of a `server.properties` file."""

from strom.cli.lean import Command, Option, Values
from strom.cli.properties_file import read_properties_file
from strom.cli.up import announce, overrides

OPTIONS = (
    Option(
        "config",
        ("--config", "-c"),
        str,
        None,
        "File with the broker's settings, in the form of Kafka's server.properties.",
        "FILE",
        required=True,
    ),
    Option(
        "override",
        ("--override", "-o"),
        list,
        [],
        "Setting that goes before the file's; may be repeated.",
        "KEY=VALUE",
    ),
)


def start(values: Values) -> int:
    """Run a broker until it is told to stop."""
    overridden = overrides(values["override"])
    settings = read_properties_file(str(values["config"]))
    from strom.broker.process import run

    return run({**settings, **overridden}, on_ready=announce)


COMMAND = Command(
    "Start a broker with the settings of a file, in the foreground.",
    (
        "strom broker start --config server.properties",
        "strom broker start -c server.properties -o node.id=2 -o log.dirs=/data/2",
    ),
    OPTIONS,
    start,
)
