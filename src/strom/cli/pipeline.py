"""`strom pipeline`: check, draw and run pipelines; see how they are, and stop them.

Spark is loaded by `run` and by `validate --connect` alone: the other commands read the pipeline's
file, or what a run has left in its directory.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from strom.cli.failure import USED_WRONGLY, Failure
from strom.cli.options import examples, noun, taking
from strom.cli.output import print_json, print_table
from strom.cli.pipeline_screen import STATUS_COLUMNS, screen_for, status_rows
from strom.cli.signals import stoppable
from strom.pipelines.declaration import Pipeline
from strom.pipelines.directory import Directory, directories
from strom.pipelines.failure import DeclarationError, PipelineError
from strom.pipelines.graph import Findings, Graph, check, kind_of, nearest
from strom.pipelines.loading import load
from strom.pipelines.picture_svg import draw_svg
from strom.pipelines.picture_text import detail, draw_text
from strom.pipelines.status import AT_WORK, Status

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

app = noun("Check, draw and run pipelines on Spark; see how they are, and stop them.")

DEFAULT_HOME = "strom-pipelines"
LOOK_SECONDS = 0.2

File = Annotated[
    Path, typer.Argument(metavar="FILE", show_default=False, help="The pipeline, in Python.")
]
Name = Annotated[str, typer.Argument(metavar="PIPELINE", show_default=False)]


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonOptions:
    """Options of a command that reports something."""

    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeOptions(JsonOptions):
    """Where pipelines keep what they need to go on."""

    home: Annotated[
        Path,
        typer.Option(
            "--dir",
            "-d",
            envvar="STROM_PIPELINES",
            metavar="DIR",
            help="Directory of checkpoints and status, one below it for each pipeline.",
        ),
    ] = Path(DEFAULT_HOME)


BootstrapServer = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server",
        "-b",
        envvar="STROM_BOOTSTRAP",
        metavar="HOST:PORT,…",
        help="Any broker of the cluster; goes before what the file says.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions(HomeOptions):
    """How to run a pipeline."""

    file: File
    once: Annotated[
        bool, typer.Option("--once", help="Read what is there, then end. Default: go on.")
    ] = False
    bootstrap_server: BootstrapServer = None
    reset: Annotated[
        list[str],
        typer.Option(
            "--reset",
            metavar="SINK",
            help="Forget how far this sink is, and begin it anew; may be repeated.",
        ),
    ] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOptions(JsonOptions):
    """Which pipeline."""

    file: File


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidateOptions(FileOptions):
    """How far to check a pipeline."""

    connect: Annotated[
        bool,
        typer.Option(
            "--connect", help="Ask the brokers for its topics, and Spark about its steps, too."
        ),
    ] = False
    bootstrap_server: BootstrapServer = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphOptions(FileOptions):
    """How to draw a pipeline."""

    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="FILE", help="Write a picture to this file.")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusOptions(HomeOptions):
    """Which pipeline to look at."""

    name: Name


@dataclass(frozen=True, slots=True, kw_only=True)
class StopOptions(StatusOptions):
    """How long to wait for a pipeline to stop."""

    timeout: Annotated[
        int, typer.Option("--timeout", metavar="SECONDS", min=0, help="How long to wait for it.")
    ] = 60


@app.command(
    epilog=examples(
        "strom pipeline run rides.py --once",
        "strom pipeline run rides.py -b broker:9092 --dir /var/lib/pipelines",
        "strom pipeline run rides.py --reset long-rides",
    )
)
@taking(RunOptions)
def run(options: RunOptions) -> None:
    """Run a pipeline, until it is stopped or, with --once, has read what is there."""
    with told():
        pipeline = loaded(options)
        Graph.of(pipeline)
        for warning in check(pipeline).warnings:
            print(f"strom: warning: {warning}", file=sys.stderr)
        follow(options, pipeline, Directory(options.home, pipeline.name))


def loaded(options: RunOptions | ValidateOptions) -> Pipeline:
    """Return the pipeline of a file, at the cluster that the command names."""
    pipeline = load(options.file)
    if options.bootstrap_server is not None:
        pipeline.settings = replace(pipeline.settings, bootstrap=options.bootstrap_server)
    return pipeline


def follow(options: RunOptions, pipeline: Pipeline, directory: Directory) -> None:
    """Run a pipeline, and show how far it is."""
    try:
        from strom.pipelines.running import Run
        from strom.pipelines.session import open_session_for
    except ImportError as error:
        raise needs_spark(error) from None
    with ExitStack() as stack:

        def open_spark() -> "SparkSession":
            spark = open_session_for(pipeline, directory.path)
            stack.callback(end, spark)
            return spark

        file = str(options.file.resolve())
        at_work = Run(pipeline, directory, open_spark, file=file, once=options.once)
        stop = stack.enter_context(stoppable())
        show = stack.enter_context(screen_for(json=options.json))
        at_work.run(stopping=lambda: bool(stop), show=show, resets=options.reset)


def end(spark: "SparkSession") -> None:
    """Stop Spark, which may be gone already."""
    with suppress(Exception):
        spark.stop()


@app.command(
    epilog=examples(
        "strom pipeline validate rides.py",
        "strom pipeline validate rides.py --json",
        "strom pipeline validate rides.py --connect -b broker:9092",
    )
)
@taking(ValidateOptions)
def validate(options: ValidateOptions) -> None:
    """Check a pipeline: names, inputs, circles, options, what nobody reads.

    Without --connect neither Spark nor a broker is asked.
    """
    with told():
        pipeline = loaded(options)
        found = check(pipeline)
        if options.connect and not found.problems:
            found = found._replace(problems=tuple(connected_problems(pipeline)))
    if options.json:
        print_json({"pipeline": pipeline.name, **found._asdict()})
    else:
        print_findings(pipeline, found)
    if found.problems:
        raise typer.Exit(1)


def connected_problems(pipeline: Pipeline) -> list[str]:
    """Return what the brokers lack of a pipeline, and what Spark would refuse of it."""
    from strom.pipelines.connecting import cluster_problems

    try:
        from strom.pipelines.analysing import analysis_problems
        from strom.pipelines.session import open_session_for
    except ImportError as error:
        raise needs_spark(error) from None
    problems = cluster_problems(pipeline)
    with TemporaryDirectory(prefix="strom-validate-") as directory:
        spark = open_session_for(pipeline, Path(directory))
        try:
            return problems + analysis_problems(spark, pipeline)
        finally:
            end(spark)


def needs_spark(error: ImportError) -> Failure:
    """Return how to say that Spark is missing."""
    return Failure(f"pipelines run on Spark: pip install 'strom[spark]' ({error})")


def print_findings(pipeline: Pipeline, found: Findings) -> None:
    """Print what a check found, a line each."""
    for problem in found.problems:
        print(f"error: {problem}")
    for warning in found.warnings:
        print(f"warning: {warning}")
    if not found.problems:
        kinds = [kind_of(node) for node in pipeline.nodes]
        counts = [f"{kinds.count(kind)} {kind}(s)" for kind in ("source", "step", "sink")]
        print(f"{pipeline.name} is all right: {', '.join(counts)}")


@app.command(
    epilog=examples(
        "strom pipeline graph rides.py", "strom pipeline graph rides.py --svg rides.svg"
    )
)
@taking(GraphOptions)
def graph(options: GraphOptions) -> None:
    """Show what comes from what in a pipeline, as text, SVG or JSON."""
    with told():
        pipeline = load(options.file)
        found = Graph.of(pipeline)
    if options.svg is not None:
        try:
            options.svg.write_text(draw_svg(found, pipeline.name))
        except OSError as error:
            raise Failure(f"{options.svg} cannot be written: {error.strerror}") from None
    if options.json:
        nodes = [
            {
                "name": node.name,
                "kind": kind_of(node),
                "inputs": list(node.inputs),
                "detail": detail(node),
            }
            for node in found.nodes
        ]
        print_json({"pipeline": pipeline.name, "nodes": nodes})
    elif options.svg is None:
        print(draw_text(found))


@app.command("list", epilog=examples("strom pipeline list", "strom pipeline list --json"))
@taking(HomeOptions)
def list_pipelines(options: HomeOptions) -> None:
    """List the pipelines that have run here, and how they are."""
    known, unreadable = statuses(options.home)
    if options.json:
        print_json([asdict(status) for status in known])
    else:
        rows = [
            (
                each.pipeline,
                each.state,
                len(each.sinks),
                sum(sink.rows for sink in each.sinks),
                each.file,
            )
            for each in known
        ]
        print_table(("Pipeline", "State", "Sinks#", "Rows#", "File"), rows)
    if unreadable:
        raise Failure("; ".join(unreadable))


def statuses(home: Path) -> tuple[list[Status], list[str]]:
    """Return how the pipelines of a directory are, and of which it cannot be read."""
    known, unreadable = [], []
    for each in directories(home):
        try:
            found = each.status()
        except PipelineError as error:
            unreadable.append(str(error))
        else:
            known += [found] if found is not None else []
    return known, unreadable


@app.command(epilog=examples("strom pipeline status rides", "strom pipeline status rides --json"))
@taking(StatusOptions)
def status(options: StatusOptions) -> None:
    """Show how far each sink of a pipeline is."""
    found = status_of(options)
    if options.json:
        print_json(asdict(found))
        return
    print(f"{found.pipeline}  {found.state}" + (f"  {found.error}" if found.error else ""))
    print_table(STATUS_COLUMNS, status_rows(found))


@app.command(epilog=examples("strom pipeline stop rides", "strom pipeline stop rides --timeout 5"))
@taking(StopOptions)
def stop(options: StopOptions) -> None:
    """Stop a pipeline that runs: each sink ends the micro-batch that it is in."""
    found = status_of(options)
    if found.state not in AT_WORK:
        raise Failure(f"pipeline '{options.name}' does not run; state: {found.state}")
    directory = Directory(options.home, options.name)
    with told():
        directory.ask_to_stop()
    deadline = time.perf_counter() + options.timeout
    while directory.is_held():
        if time.perf_counter() > deadline:
            raise Failure(
                f"pipeline '{options.name}' (process {found.pid}) has not stopped within "
                f"{options.timeout} s; it still has the request"
            )
        time.sleep(LOOK_SECONDS)
    found = status_of(options)
    if options.json:
        print_json(asdict(found))
    else:
        print(f"{found.pipeline}  {found.state}")


def status_of(options: StatusOptions) -> Status:
    """Return how a pipeline is, or say which there are."""
    with told():
        found = Directory(options.home, options.name).status()
    if found is None:
        names = [each.pipeline for each in directories(options.home)]
        raise Failure(
            f"no pipeline '{options.name}' has run in {options.home} (--dir): "
            + nearest(options.name, names)
        )
    return found


@contextmanager
def told() -> Iterator[None]:
    """Tell what is wrong with a pipeline as a command's failure."""
    try:
        yield
    except DeclarationError as error:
        raise Failure("; ".join(error.problems), USED_WRONGLY) from None
    except PipelineError as error:
        raise Failure(str(error)) from None
