"""What SIGINT (Ctrl+C) and SIGTERM do to a command: it ends early, and puts away what it made.

So does SIGHUP, which comes when its terminal is closed, unless it was told to outlive that (nohup).
Unless a command says otherwise, each unwinds it like an exception. One that has something to
say about the work it has done so far is `stoppable`: it looks at its Stop and ends by itself.
"""

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from strom.cli.failure import ENDED_BY_SIGNAL


class Ended(BaseException):
    """A signal ends the command; not an Exception, so that nothing on the way takes it for one."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = ENDED_BY_SIGNAL + number


class Stop:
    """Whether a signal has come; true once one has."""

    def __init__(self) -> None:
        self.signal = 0

    def __bool__(self) -> bool:
        return self.signal != 0

    def take(self, number: int) -> None:
        """Take note of a signal."""
        self.signal = number

    def finish(self) -> None:
        """End with the exit code of the signal, if one has come."""
        if self.signal:
            raise Ended(self.signal)


@contextmanager
def stoppable() -> Iterator[Stop]:
    """Let a signal end the work of the block instead of the process."""
    stop = Stop()
    with handling((signal.SIGINT, signal.SIGTERM), stop.take):
        yield stop


@contextmanager
def unwinding() -> Iterator[None]:
    """Let SIGTERM and SIGHUP unwind the block, as SIGINT does anyway."""
    is_left_alone = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    numbers = [signal.SIGTERM, *([] if is_left_alone else [signal.SIGHUP])]

    def unwind(number: int) -> None:
        raise Ended(number)

    with handling(numbers, unwind):
        yield


@contextmanager
def handling(numbers: Sequence[int], handle: Callable[[int], None]) -> Iterator[None]:
    """Have signals handled while the block runs, and put back what was."""
    before = [signal.signal(number, lambda got, _: handle(got)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
