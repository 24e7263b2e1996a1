"""What a user did wrong, or what went wrong for them: one line and an exit code.

0  done    1  failed    2  used wrongly    128 + n  ended by signal n (130: Ctrl+C)
"""

import errno
import sys

#: Of an error: a disk, a quota or a file is full.
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

FAILED = 1
USED_WRONGLY = 2
ENDED_BY_SIGNAL = 128


class Failure(Exception):  # noqa: N818 - not an error of the program
    """A command could not do what it was asked to; the text says why and what to do."""

    def __init__(self, text: str, exit_code: int = FAILED) -> None:
        super().__init__(text)
        self.exit_code = exit_code


def report(failure: Failure) -> int:
    """Print the one line; return the exit code."""
    print(f"strom: {failure}", file=sys.stderr)
    return failure.exit_code
