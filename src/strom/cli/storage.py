"""`strom storage`: give data directories an owner, or see whose they are.

A broker formats an empty directory by itself. Formatting beforehand is for those who want to say
which cluster and node it is to belong to.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from strom.cli.failure import USED_WRONGLY, Failure
from strom.cli.options import INT32_MAX, examples, noun, taking
from strom.cli.output import print_json, print_table
from strom.cli.properties_file import read_properties_file

if TYPE_CHECKING:
    from uuid import UUID

    from strom.log.directory import Meta

app = noun("Format data directories, and see whose they are.")


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryOptions:
    """Which directories: named, or those of a broker's settings."""

    directories: Annotated[
        list[Path] | None, typer.Argument(metavar="DIRECTORY", show_default=False)
    ] = None
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", metavar="FILE", help="Those of this server.properties."),
    ] = None
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatOptions(DirectoryOptions):
    """Whose the directories are to be."""

    cluster_id: Annotated[
        str | None, typer.Option("--cluster-id", "-t", help="Default: a new one.")
    ] = None
    node_id: Annotated[
        int | None, typer.Option(min=0, max=INT32_MAX, help="Default: the file's, or 1.")
    ] = None
    ignore_formatted: Annotated[
        bool, typer.Option("--ignore-formatted", "-g", help="Pass over those that have an owner.")
    ] = False


@dataclass(frozen=True, slots=True)
class Named:
    """The directories that are meant, and the node that the settings name."""

    paths: list[Path] = field(default_factory=list)
    node_id: int = 1


@app.command(
    "format",
    epilog=examples(
        "strom storage format strom-data",
        "strom storage format --config server.properties --cluster-id $(strom storage random-uuid)",
    ),
)
@taking(FormatOptions)
def format_(options: FormatOptions) -> None:
    """Make directories ready for a broker."""
    from strom.broker.host import Host
    from strom.broker.storage import Plan, format_storage, locked

    named = directories(options)
    host = Host()
    owned = owners(named.paths, options)
    cluster_id = cluster_of(options, owned)
    node_id = named.node_id if options.node_id is None else options.node_id
    ids = [(str(path), host.new_id()) for path in named.paths]
    formatted = [str(path) for path in named.paths if path not in owned]
    try:
        with locked(host.disk, formatted):
            format_storage(host.disk, Plan(node_id, cluster_id, ids), now_ms=host.now_ms())
    except OSError as error:
        where = error.filename or ", ".join(map(str, named.paths))
        raise Failure(f"cannot format {where}: {error.strerror}") from None
    if options.json:
        print_json({"formatted": formatted, "cluster_id": cluster_id, "node_id": node_id})
        return
    for each in formatted:
        print(f"Formatted {each} for node {node_id} of cluster {cluster_id}.")


def owners(paths: list[Path], options: FormatOptions) -> "dict[Path, Meta]":
    """Return whose the directories are that have an owner, if that is all right."""
    from strom.log.directory import META

    owned = {path: read_owner(path) for path in paths if (path / META).exists()}
    if owned and not options.ignore_formatted:
        path = next(iter(owned))
        raise Failure(f"{path} is already formatted: see `strom storage info {path}`")
    return owned


def cluster_of(options: FormatOptions, owned: "dict[Path, Meta]") -> str:
    """Return the cluster that the directories are to belong to: all of them to the same."""
    from strom.broker.host import Host
    from strom.log.directory import read_id, write_id

    for path, meta in owned.items():
        if options.cluster_id not in (None, meta.cluster_id):
            raise Failure(f"{path} belongs to cluster {meta.cluster_id}")
        return meta.cluster_id
    cluster_id = options.cluster_id or write_id(Host().new_id())
    try:
        read_id(cluster_id)
    except ValueError:
        raise Failure(f"{cluster_id!r} is no cluster id: see `strom storage random-uuid`") from None
    return cluster_id


def directories(options: DirectoryOptions) -> Named:
    """Return the directories that are meant."""
    if options.directories:
        return Named(options.directories)
    if options.config is None:
        raise Failure("name a directory, or a settings file with --config", USED_WRONGLY)
    from strom.metadata.settings.definition import SettingsError
    from strom.metadata.settings.load import load

    try:
        settings = load(read_properties_file(str(options.config))).settings
    except SettingsError as error:
        raise Failure(str(error)) from None
    # The metadata log goes into the first.
    paths = dict.fromkeys((settings.metadata_log_dir, *settings.log_dirs))
    return Named([Path(path) for path in paths], settings.node_id)


@app.command(epilog=examples("strom storage info strom-data", "strom storage info -c FILE --json"))
@taking(DirectoryOptions)
def info(options: DirectoryOptions) -> None:
    """Show whose directories are."""
    from strom.log.directory import write_id

    shown = []
    for path in directories(options).paths:
        meta = read_owner(path)
        shown.append((str(path), meta.node_id, meta.cluster_id, write_id(meta.directory_id)))
    if options.json:
        names = ("path", "node_id", "cluster_id", "directory_id")
        print_json([dict(zip(names, row, strict=True)) for row in shown])
    else:
        print_table(("Directory", "Node#", "Cluster", "Id"), shown)


def read_owner(path: Path) -> "Meta":
    """Read whose directory it is."""
    from strom.log.directory import META, UnformattedDirectoryError, read_meta

    try:
        return read_meta((path / META).read_bytes())
    except FileNotFoundError:
        raise Failure(f"{path} is not formatted: `strom storage format {path}`") from None
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror}") from None
    except UnformattedDirectoryError as error:
        raise Failure(f"{path}: {error}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class IdOptions:
    """How to print it."""

    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False


@app.command(
    "random-uuid", epilog=examples("strom storage random-uuid", "strom storage random-uuid --json")
)
@taking(IdOptions)
def random_uuid(options: IdOptions) -> None:
    """Print a new id, as clusters and directories have one."""
    from strom.broker.host import Host
    from strom.log.directory import write_id

    identifier: UUID = Host().new_id()
    # An id must not look like an option when it is handed to another command.
    while write_id(identifier).startswith("-"):
        identifier = Host().new_id()
    text = write_id(identifier)
    if options.json:
        print_json({"id": text})
    else:
        print(text)
