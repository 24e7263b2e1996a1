"""A script that Spark takes for Python, and the process behind it that forks what Spark wants.

The script leaves all to Python that does not run a module, and `fork_call` leaves to it what cannot
be forked: so it is as good as Python where nothing is behind it.
"""

import atexit
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from strom.spark import fork_call, fork_server

_SCRIPT = """\
#!/bin/sh
case "$1" in
-m) exec {python} -I -S {call} {address} {python} "$@" ;;
*) exec {python} "$@" ;;
esac
"""
_LEAN = [sys.executable, "-I", "-S", fork_call.__file__, fork_call.CAN_START]


@cache
def start_stand_in() -> str | None:
    """Return the script, with all behind it on its way; None where there can be none.

    It is one for the life of this process: a JVM is told once what Python is, and may have several
    sessions.
    """
    home = Path(tempfile.mkdtemp(prefix="strom-spark-python-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    script, address = home / "python", home / "socket"
    names = {"python": sys.executable, "call": fork_call.__file__, "address": str(address)}
    script.write_text(_SCRIPT.format(**{key: shlex.quote(each) for key, each in names.items()}))
    script.chmod(0o700)
    # Programs are not run from every directory, and some Pythons do not start without settings.
    if not os.access(script, os.X_OK) or subprocess.run(_LEAN, check=False).returncode:
        return None
    with socket.socket(socket.AF_UNIX) as listener:
        try:
            listener.bind(str(address))
        except OSError:
            # The path of the directory may be longer than an address can be.
            return None
        # From now on who calls waits until all is loaded, and does not help itself.
        listener.listen()
        atexit.register(_end, _start(listener))
    return str(script)


def _start(listener: socket.socket) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", fork_server.__name__, str(listener.fileno())],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        pass_fds=[listener.fileno()],
        env={**os.environ, **fork_server.FOR_ALL, fork_server.THREADS: fork_server.ONE_THREAD},
    )


def _end(server: "subprocess.Popen[bytes]") -> None:
    server.kill()
    server.communicate()
