"""Stands where Spark starts a Python: has it forked with all loaded, and ends when it ends.

    python -I -S fork_call.py SOCKET PYTHON -m MODULE ARGUMENT...

What is forked gets this process's standard streams, environment and directory, and the signals that
it is sent. If it cannot be had, for whatever reason, this process becomes the Python that it stands
for. It loads next to nothing: that is what it is for.
"""

import marshal
import os
import select
import signal
import socket
import struct
import sys

#: Longer than all takes to load: who is called meanwhile answers then.
ANSWER_SECONDS = 20
PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
SIZE = struct.Struct("!i")
GO = b"!"
#: All that is to be known is whether it comes so far.
CAN_START = "--can-start"


def main() -> None:
    """Be the process that was asked for, in one way or the other."""
    if sys.argv[1:] == [CAN_START]:
        return
    address, python, *arguments = sys.argv[1:]
    try:
        forked = call(address, arguments)
    except (OSError, AttributeError, struct.error):
        os.execv(python, [python, *arguments])
    for number in PASSED_ON:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda number, _: pass_on(forked, number))
    select.select([forked], [], [])


def call(address: str, arguments: list[str]) -> int:
    """Have it forked; return what tells of its end."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(ANSWER_SECONDS)
        connection.connect(address)
        request = marshal.dumps((arguments, dict(os.environ), os.getcwd()))
        socket.send_fds(connection, [SIZE.pack(len(request))], [0, 1, 2])
        connection.sendall(request)
        (pid,) = SIZE.unpack(connection.recv(SIZE.size))
        forked = os.pidfd_open(pid)
        # It has waited for this, so that there is one process even if somebody gave up waiting.
        connection.sendall(GO)
    return forked


def pass_on(forked: int, number: int) -> None:
    """Send it the signal that was meant for it."""
    try:
        signal.pidfd_send_signal(forked, number)
    except ProcessLookupError:
        sys.exit()


if __name__ == "__main__":
    main()
