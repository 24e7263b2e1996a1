"""Looking something up without waiting for the disk.

A look-up on the loop goes by indexes and the headers of a few batches. What it needs may not be
in memory: an index that was not read yet, a page that the system has dropped since. Then the
look-up has changed nothing and raises a ColdError, which knows how to get it:

    take = cold.fetch()    in a thread: reads what is missing, touches nothing of the log
    take()                 on the loop: hands over what was read, unless the log has changed
                           so that it is no longer wanted

after which the look-up is tried again, at once, and comes further: `warmed` does all that. A
method whose name ends in `_now` is such a look-up. Who may wait, because it is in a thread or
nobody is served yet, looks things up `patiently`.
"""

from collections.abc import Callable, Coroutine
from typing import Final, Protocol, TypeVar

Result = TypeVar("Result")
Take = Callable[[], None]
Fetch = Callable[[], Take]

#: So often in a row something cannot be read before that is an error. A file may have gone with its
#: segment, and the look-up that knows of that comes upon another one that is not in memory.
FAILURES_MAX: Final = 2


class Offload(Protocol):
    """Runs what would stop the loop somewhere else, and gives its result."""

    def __call__(self, work: Callable[[], Result], /) -> Coroutine[None, None, Result]:
        """Run the work off the loop."""


class ColdError(Exception):
    """Something must be read from the disk first."""

    def __init__(self, fetch: Fetch) -> None:
        super().__init__("not in memory")
        self.fetch = fetch


class DamagedSegmentError(OSError):
    """A segment holds something else than batches where a batch must begin."""


def patiently(look_up: Callable[[], Result]) -> Result:
    """Look something up, and wait for the disk where that is necessary."""
    while True:
        try:
            return look_up()
        except ColdError as cold:
            take = cold.fetch()
        take()


async def warmed(look_up: Callable[[], Result], offload: Offload) -> Result:
    """Look something up, and have a thread wait for the disk where that is necessary."""
    failures: list[OSError] = []
    while True:
        try:
            return look_up()
        except ColdError as cold:
            if len(failures) == FAILURES_MAX:
                raise failures[-1] from None
            fetch = cold.fetch
        try:
            take = await offload(fetch)
        except OSError as error:
            failures.append(error)
        else:
            failures.clear()
            take()


def nothing_to_take() -> None:
    """Take over nothing: what was read is in memory now, and the system's to find."""
