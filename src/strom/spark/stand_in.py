"""A script that Spark takes for Python, and the process behind it that forks what Spark wants.

The script leaves all to Python that does not run a module, and `fork_call` leaves to it what cannot
be forked: so it is as good as Python where nothing is behind it.
"""

import atexit
import os
import shlex
import shutil
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
    server = subprocess.Popen(
        [sys.executable, "-m", fork_server.__name__, str(address)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env={**os.environ, **fork_server.FOR_ALL, fork_server.THREADS: fork_server.ONE_THREAD},
    )
    atexit.register(_end, server)
    return str(script)


def _end(server: "subprocess.Popen[bytes]") -> None:
    server.kill()
    server.communicate()
