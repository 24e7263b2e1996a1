"""What of a running JVM's heap is alive: asked as `jcmd` asks, which not every Java brings along.

A JVM that finds the file .attach_pid<pid> when it is sent SIGQUIT opens a socket, and takes
commands there: version of the protocol, name and three arguments, each with a zero behind it.
"""

import os
import re
import signal
import socket
import time
from pathlib import Path

ATTACH_SECONDS_MAX = 30


def live_heap_bytes(pid):
    """Have all garbage collected; how many bytes the objects take that are left."""
    told = command(pid, "GC.class_histogram")
    return int(re.search(r"^Total +\d+ +(\d+)", told, re.MULTILINE)[1])


def command(pid, text):
    """Run a diagnostic command in the JVM; what it prints."""
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(str(attach(pid)))
        link.sendall(f"1\0jcmd\0{text}\0\0\0".encode())
        with link.makefile() as answer:
            code, told = answer.readline(), answer.read()
    if code.strip() != "0":
        raise SystemExit(f"the JVM {pid} refuses {text}: {told}")
    return told


def attach(pid):
    """The socket of the JVM, which it opens when it is asked for the first time."""
    opened = Path(f"/tmp/.java_pid{pid}")
    if opened.exists():
        return opened
    asked = Path(f"/tmp/.attach_pid{pid}")
    asked.touch()
    try:
        os.kill(pid, signal.SIGQUIT)
        deadline = time.monotonic() + ATTACH_SECONDS_MAX
        while not opened.exists():
            if time.monotonic() > deadline:
                raise SystemExit(f"the JVM {pid} does not answer")
            time.sleep(0.05)
    finally:
        asked.unlink()
    return opened
