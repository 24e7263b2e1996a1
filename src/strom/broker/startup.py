"""The log directories at start: whose they are, formatted if they are new, locked."""

from contextlib import ExitStack

from strom.broker.host import Host
from strom.broker.storage import Found, Plan, format_storage, inspect_storage
from strom.log.directory import LogDirectory, UnformattedDirectoryError, write_id
from strom.metadata.settings.values import BrokerSettings


class StartupError(Exception):
    """Why the broker cannot start; one line that says what to do."""


def open_directories(host: Host, settings: BrokerSettings) -> list[LogDirectory]:
    """Take the log directories, the one of metadata log first; format new ones."""
    paths = list(dict.fromkeys((settings.metadata_log_dir, *settings.log_dirs)))
    try:
        found = inspect_storage(host.disk, paths)
        check(found, settings.node_id)
        format_new(host, found, settings.node_id)
    except OSError as error:
        where = error.filename or ", ".join(paths)
        raise StartupError(f"cannot use {where}: {error.strerror or error}") from error
    with ExitStack() as on_failure:
        opened = []
        for path in paths:
            directory = open_directory(host, path)
            on_failure.callback(directory.close, clean=False)
            opened.append(directory)
        on_failure.pop_all()
    return opened


def check(found: list[Found], node_id: int) -> None:
    """Refuse directories that are another node's, or do not belong together."""
    for each in found:
        if each.meta is None:
            continue
        if each.problem is not None:
            raise StartupError(each.problem)
        if each.meta.node_id != node_id:
            raise StartupError(
                f"the data in {each.path} belongs to node {each.meta.node_id}, and node.id is "
                f"{node_id}: set node.id={each.meta.node_id}, or other log.dirs"
            )


def format_new(host: Host, found: list[Found], node_id: int) -> None:
    """Format the directories that nobody owns yet."""
    known = [each.meta for each in found if each.meta is not None]
    if len(known) == len(found):
        return
    cluster_id = known[0].cluster_id if known else write_id(host.new_id())
    ids = [each.meta.directory_id if each.meta else host.new_id() for each in found]
    paths = [each.path for each in found]
    plan = Plan(node_id, cluster_id, list(zip(paths, ids, strict=True)))
    format_storage(host.disk, plan, now_ms=host.now_ms())


def open_directory(host: Host, path: str) -> LogDirectory:
    """Lock a directory and take it into use."""
    try:
        return LogDirectory.open(host.disk, path)
    except BlockingIOError:
        raise StartupError(
            f"another process uses {path}: stop it, or choose other log.dirs"
        ) from None
    except UnformattedDirectoryError as error:
        # Nobody can tell whose data that is, so it is not ours to format anew.
        raise StartupError(f"cannot use {path}: {error}") from None
    except OSError as error:
        raise StartupError(f"cannot use {path}: {error.strerror or error}") from error
