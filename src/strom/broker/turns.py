"""Look-ups in logs, so many in a turn of the loop; what is not in memory, a thread reads.

A few partitions of which all is in memory are looked up at once, as if this were not here. Of many,
a portion is done, then all others who have something to do on the loop, then the next portion.
Where something must be read from the disk, a thread reads it for the whole portion; the loop does
not wait.

What was true for one partition may not be when it is the next one's turn: the work for each takes
image, settings and partitions as they are by then.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from typing import Final, TypeVar

from strom.broker.answers import answer_of
from strom.broker.context import Large, Ordered
from strom.log.cold import FAILURES_MAX, ColdError, Fetch, Offload, Take

Item = TypeVar("Item")
Done = TypeVar("Done")
Response = TypeVar("Response")

#: So many take a few milliseconds.
AT_ONCE: Final = 200


def answer_each(
    items: Sequence[Item],
    work: Callable[[Item], Done],
    respond: Callable[[list[Done]], Response],
    offload: Offload,
    failed: Callable[[Item, OSError], Done],
) -> Response | Ordered:
    """Do the work for each item, and make the answer of what came out, in the same order.

    What takes longer holds back the connection's next requests: an answer may be far larger than
    its request, and a client could have hundreds of them made that it does not read.
    """
    done: list[Done] = []
    if len(items) <= AT_ONCE:
        try:
            for item in items:
                done.append(work(item))  # noqa: PERF401 - what is done before an error stays done
            return respond(done)
        except (ColdError, OSError):
            pass
    rest = in_turns(items[len(done) :], work, offload, failed)
    return Ordered(_answer_later(done, rest, respond))


async def _answer_later(
    done: list[Done],
    rest: Coroutine[None, None, list[Done]],
    respond: Callable[[list[Done]], Response],
) -> Response | Large:
    done += await rest
    return answer_of(len(done), lambda: respond(done))


async def in_turns(
    items: Sequence[Item],
    work: Callable[[Item], Done],
    offload: Offload,
    failed: Callable[[Item, OSError], Done],
) -> list[Done]:
    """Do the work for each item, a portion at a time; a thread reads for all of those at once.

    The results are in the order of the items, the work need not be. Work that raises a ColdError
    has done nothing, and is done again. `failed` is told of what cannot be read or written, and
    gives what comes out instead.
    """
    done: list[Done] = []
    for start in range(0, len(items), AT_ONCE):
        if done:
            await asyncio.sleep(0)
        done += await _look_up_all(items[start : start + AT_ONCE], work, offload, failed)
    return done


async def _look_up_all(
    items: Sequence[Item],
    work: Callable[[Item], Done],
    offload: Offload,
    failed: Callable[[Item, OSError], Done],
) -> list[Done]:
    done: dict[int, Done] = {}
    failures: dict[int, OSError] = {}
    in_a_row: Counter[int] = Counter()
    while True:
        cold = {}
        for number, item in enumerate(items):
            if number not in done:
                try:
                    done[number] = work(item)
                except ColdError as error:
                    if in_a_row[number] == FAILURES_MAX:
                        done[number] = failed(item, failures[number])
                    else:
                        cold[number] = error.fetch
                except OSError as error:
                    done[number] = failed(item, error)
        if not cold:
            return [done[number] for number in range(len(items))]
        failures = await _fetch_all(cold, offload)
        in_a_row = Counter({number: in_a_row[number] + 1 for number in failures})


async def _fetch_all(cold: dict[int, Fetch], offload: Offload) -> dict[int, OSError]:
    """Have a thread read all that is missing; return what cannot be read."""
    failures: dict[int, OSError] = {}

    def fetch_all() -> list[Take]:
        takes = []
        for number, fetch in cold.items():
            try:
                takes.append(fetch())
            except OSError as error:
                failures[number] = error
        return takes

    for take in await offload(fetch_all):
        take()
    return failures
