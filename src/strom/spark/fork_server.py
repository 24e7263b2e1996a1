"""What all Python processes of a local Spark are forked from, with what they need loaded already.

    python -m strom.spark.fork_server LISTENER    # the number of a descriptor

Spark starts half a dozen of them for the first query, one after the other: to find the format, to
make the source, for a stream's offsets, to plan the read, to plan the write, and one that workers
are forked from. By itself each begins by loading PySpark, and most of them Arrow, Strom and pandas
too: half a second of a processor every time, while the query waits. So it is done once, beside the
start of the JVM. `fork_call` is what Spark starts instead, through a script (`stand_in`) that it
takes for Python.

A fork is what a start would have been: the same streams, environment, directory, arguments and
module path. Where it would not be, because another environment might have loaded something else, or
because a library has started threads, it is refused, and Spark gets its own.
"""

import marshal
import os
import runpy
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Mapping
from typing import NamedTuple

from strom.spark.fork_call import ANSWER_SECONDS, GO, SIZE

#: What Spark sets for each of its Python processes, and Python reads when it starts.
FOR_ALL = {"PYTHONHASHSEED": "0", "PYTHONUNBUFFERED": "YES"}
#: Spark sets it for workers. With one thread a library starts none.
THREADS = "OMP_NUM_THREADS"
ONE_THREAD = "1"
_PATH = "PYTHONPATH"
#: What Spark tells its processes of themselves, and a shell its own.
_OF_EACH = frozenset({_PATH, THREADS, "_", "SHLVL", "PWD", "OLDPWD"})
_OF_SPARK = ("SPARK_", "PYTHON_", "PYSPARK_", "_PYSPARK_")
_STREAMS = 3
_REQUEST_BYTES_MAX = 16 * 1024 * 1024


class Request(NamedTuple):
    """A process as Spark would have started it."""

    arguments: list[str]
    environment: dict[str, str]
    directory: str


class Fork(NamedTuple):
    """What a fork is to be, and who waits for it."""

    request: Request
    streams: list[int]
    connection: socket.socket


def main() -> None:
    """Serve until the standard input ends, for then the owner is gone; a fork goes on from here."""
    # It is meant for the program in the foreground; Spark's JVM does not take it either.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=int(sys.argv[1])) as listener:
        # Who calls meanwhile is answered when it is done.
        from strom.spark.daemon import load

        fork = serve(listener) if load() else None
    if fork is not None and is_awaited(fork.connection):
        take_over(fork.request, fork.streams)
        run(fork.request.arguments)


def serve(listener: socket.socket) -> Fork | None:
    """Fork what is asked for; return in a fork, or when the owner is gone."""
    # Nobody waits for them: they shall not stay as zombies.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        ready, _, _ = select.select([sys.stdin.fileno(), listener], [], [])
        if listener not in ready:
            return None
        connection, _ = listener.accept()
        connection.settimeout(ANSWER_SECONDS)
        streams: list[int] = []
        try:
            head, streams, _, _ = socket.recv_fds(connection, SIZE.size, _STREAMS)
            request = receive(connection, *SIZE.unpack(head))
            if len(streams) == _STREAMS and can_be_forked(request) and not os.fork():
                return Fork(request, streams, connection)
        except (OSError, EOFError, ValueError, TypeError, struct.error):
            # Who called hears nothing, and helps itself.
            pass
        connection.close()
        for each in streams:
            os.close(each)


def receive(connection: socket.socket, size: int) -> Request:
    """Return what is asked for."""
    if not 0 < size <= _REQUEST_BYTES_MAX:
        raise ValueError(f"a request of {size} bytes")
    body = b""
    while len(body) < size:
        part = connection.recv(size - len(body))
        if not part:
            raise EOFError
        body += part
    return Request(*marshal.loads(body))


def can_be_forked(request: Request) -> bool:
    """Return whether a fork of this process is what Spark would have started."""
    return (
        request.arguments[:1] == ["-m"]
        and len(request.arguments) > 1
        and request.environment.get(THREADS, ONE_THREAD) == ONE_THREAD
        and _when_loading(request.environment) == _when_loading(os.environ)
    )


def _when_loading(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what Python and its libraries may have read when they were loaded."""
    return {
        name: value
        for name, value in environment.items()
        if name not in _OF_EACH and not name.startswith(_OF_SPARK)
    }


def is_awaited(connection: socket.socket) -> bool:
    """Return whether the caller is still there: who gave up waiting has helped itself."""
    with connection:
        try:
            connection.sendall(SIZE.pack(os.getpid()))
            return connection.recv(len(GO)) == GO
        except OSError:
            return False


def take_over(request: Request, streams: list[int]) -> None:
    """Have what a process has that Spark starts."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, each in enumerate(streams):
        os.dup2(each, number)
        os.close(each)
    first = _looked_at_first(os.environ, os.getcwd())
    others = [each for each in sys.path if each not in first]
    sys.path[:] = dict.fromkeys([*_looked_at_first(*request[1:]), *others])
    os.chdir(request.directory)
    os.environ.clear()
    os.environ.update(request.environment)
    time.tzset()


def _looked_at_first(environment: Mapping[str, str], directory: str) -> list[str]:
    """Return where modules are looked for before all else: the directory, and what is set."""
    path = environment.get(_PATH)
    entries = path.split(os.pathsep) if path else []
    return [directory, *(os.path.normpath(os.path.join(directory, each)) for each in entries)]


def run(arguments: list[str]) -> None:
    """Run the module as `python -m` does."""
    module = arguments[1]
    # It is run under another name; that it has been loaded under its own would be warned of.
    sys.modules.pop(module, None)
    sys.argv = arguments[1:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
