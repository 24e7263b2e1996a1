"""What a user did wrong, or what went wrong for them: one line and an exit code.

0  done    1  failed    2  used wrongly    128 + n  ended by signal n (130: Ctrl+C)
"""

import errno
import os
import sys
from collections.abc import Iterable

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


def require_text(words: Iterable[str]) -> None:
    """Refuse words of a command line that are not UTF-8: most of what they go to wants text."""
    for word in words:
        if not is_text(word):
            raise Failure(f"{os.fsencode(word)!r} is not UTF-8 text", USED_WRONGLY)


def is_text(word: str) -> bool:
    """Whether the word has no half characters, as which bytes that are no text are read."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def report(failure: Failure) -> int:
    """Print the one line; return the exit code."""
    print(f"strom: {failure}", file=sys.stderr)
    return failure.exit_code
