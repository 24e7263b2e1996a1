"""`strom up`: one command, a broker to play with, in the foreground.

Everything it needs is made on the spot: an empty directory is formatted on the first start.
With `--memory` the directory lies on a memory file system and is removed on the way out.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from strom.cli.failure import USED_WRONGLY, Failure, require_text
from strom.cli.lean import Command, Option, Values

if TYPE_CHECKING:
    from strom.broker.broker import Broker

MEMORY_FILE_SYSTEM = "/dev/shm"
DEFAULT_DIRECTORY = "strom-data"

OPTIONS = (
    Option("port", ("--port", "-p"), int, 9092, "Port to listen on; 0 picks a free one."),
    Option("host", ("--host",), str, "127.0.0.1", "Address to listen on."),
    Option("dir", ("--dir", "-d"), str, DEFAULT_DIRECTORY, "Directory that keeps the data."),
    Option("memory", ("--memory",), bool, False, "Keep the data in memory, for this run only."),
    Option(
        "http_port",
        ("--http-port",),
        int,
        None,
        "Port for /metrics and /healthz; 0 picks a free one. Default: none.",
    ),
    Option(
        "http_host",
        ("--http-host",),
        str,
        None,
        "Address of that port; 0.0.0.0 lets other machines ask. Default: 127.0.0.1.",
    ),
    Option(
        "override",
        ("--override", "-o"),
        list,
        [],
        "Broker setting by its name in server.properties; may be repeated.",
        "KEY=VALUE",
    ),
    Option("json", ("--json",), bool, False, "Say that it is ready in one line of JSON."),
)


def up(values: Values) -> int:
    """Run a broker until it is told to stop."""
    overridden = overrides(values["override"])
    # They are told to clients, as text.
    require_text(str(values[each]) for each in ("dir", "host", "http_host"))
    if values["memory"] and values["dir"] != DEFAULT_DIRECTORY:
        raise Failure("--memory keeps nothing: leave out --dir, or --memory", USED_WRONGLY)
    if "," in str(values["dir"]):
        raise Failure("--dir names one directory, which has no comma in its name", USED_WRONGLY)
    from strom.broker.process import run

    with directory(str(values["dir"]), in_memory=bool(values["memory"])) as (path, put_away):
        static = {
            "log.dirs": path,
            "listeners": f"PLAINTEXT://{bracketed(str(values['host']))}:{values['port']}",
        }
        if values["http_port"] is not None:
            static["strom.http.port"] = str(values["http_port"])
        if values["http_host"] is not None:
            static["strom.http.host"] = str(values["http_host"])
        return run({**static, **overridden}, on_ready=announcer(values), on_abort=put_away)


@contextmanager
def directory(path: str, *, in_memory: bool) -> Iterator[tuple[str, Callable[[], None]]]:
    """Give the data directory, and what takes it away again if it was for this run only."""
    if not in_memory:
        yield os.path.abspath(path), lambda: None
        return
    from functools import partial
    from shutil import rmtree
    from tempfile import mkdtemp

    if not os.path.isdir(MEMORY_FILE_SYSTEM):
        print(f"no {MEMORY_FILE_SYSTEM} here: the files go to a temporary directory", flush=True)
    parent = MEMORY_FILE_SYSTEM if os.path.isdir(MEMORY_FILE_SYSTEM) else None
    path = mkdtemp(prefix="strom-", dir=parent)
    put_away = partial(rmtree, path, ignore_errors=True)
    try:
        yield path, put_away
    finally:
        put_away()


def announcer(values: Values) -> "Callable[[Broker], None]":
    """Return what says that clients may come, to people or to programs."""
    return announce_as_json if values["json"] else announce


def announce_as_json(broker: "Broker") -> None:
    """Say in one line that clients may come, and where the metrics are, if anywhere."""
    from json import dumps

    print(dumps({"ready": broker.bootstrap, "metrics": broker.metrics_url}), flush=True)


def announce(broker: "Broker") -> None:
    """Say that clients may come."""
    bootstrap = broker.bootstrap
    print(f"ready {bootstrap}", flush=True)
    if broker.metrics_url:
        print(f"metrics {broker.metrics_url}", flush=True)
    if sys.stdout.isatty():
        at = "" if bootstrap == "127.0.0.1:9092" else f" -b {bootstrap}"
        print(f'try: echo "Countdown gestartet" | strom produce{at} flugdaten')
        print(f"     strom consume{at} flugdaten --from-beginning")
        print("Ctrl+C stops it.", flush=True)


def bracketed(host: str) -> str:
    """Write an IPv6 address as a URL wants it."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def overrides(texts: object) -> dict[str, str]:
    """Read KEY=VALUE texts."""
    from strom.metadata.settings.definition import SettingsError
    from strom.metadata.settings.properties import read_overrides

    assert isinstance(texts, list)
    require_text(texts)
    try:
        return read_overrides(texts)
    except SettingsError as error:
        raise Failure(str(error), USED_WRONGLY) from None


COMMAND = Command(
    "Start a broker to play with, in the foreground; Ctrl+C stops it.",
    (
        "strom up",
        "strom up --port 0 --memory",
        "strom up --http-port 9644",
        "strom up --http-port 9644 --http-host 0.0.0.0",
        "strom up --port 0 --json",
        "strom up --dir /var/lib/strom --override log.retention.hours=24",
    ),
    OPTIONS,
    up,
)
