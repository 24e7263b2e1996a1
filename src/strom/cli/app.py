"""The whole command line as typer sees it: one noun a file, put together here."""

from typing import Annotated

import typer

from strom import __version__
from strom.cli import (
    broker,
    config,
    consume,
    group,
    log,
    perf,
    pipeline,
    produce,
    storage,
    topic,
    transaction,
    up,
)
from strom.cli.demo.play import demo
from strom.cli.options import add_lean, examples, noun
from strom.records.walk import IS_COMPILED


def show_version(asked: bool) -> None:
    """Print the version and stop, if asked to."""
    if asked:
        print(f"strom {__version__}{'' if IS_COMPILED else ', installed without a C compiler'}")
        raise typer.Exit


def strom(
    version: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """A streaming platform that every Kafka client can use.

    `strom up` starts a broker; the other commands work with it and with any Apache Kafka.
    """


app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["--help", "-h"]},
)
app.callback()(strom)

add_lean(app, "up", up.COMMAND)
app.command(
    epilog=examples("strom demo", "strom demo --seconds 60", "strom demo -b localhost:9092")
)(demo)
produce.add_to(app)
consume.add_to(app)
app.add_typer(topic.app, name="topic")
app.add_typer(group.app, name="group")
app.add_typer(transaction.app, name="transaction")
app.add_typer(config.app, name="config")
app.add_typer(log.app, name="log")
app.add_typer(pipeline.app, name="pipeline")
app.add_typer(perf.app, name="perf")
app.add_typer(storage.app, name="storage")

brokers = noun("Run a broker.")
brokers.callback()(lambda: None)
add_lean(brokers, "start", broker.COMMAND)
app.add_typer(brokers, name="broker")
