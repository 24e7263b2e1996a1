"""Work for many partitions, a few at a time: others get their turn on the loop in between.

A request may name thousands of partitions. What is to be done for each takes microseconds, so a
few are served at once, as if this were not here; of many, a portion is done, then all others who
have something to do on the loop, then the next portion. The answer is put together and
written in a thread. Where the work finds that something must be read from the disk, a thread
reads it; the rest waits for that, the loop does not.

What was true for one partition may not be when it is the next one's turn: the work for each takes
image, settings and partitions as they are by then.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import partial
from typing import Final, TypeVar

from strom.broker.answers import answer_of
from strom.broker.context import Large, Ordered
from strom.log.cold import FAILURES_MAX, ColdError, Fetch, Offload, Take, warmed

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
    *,
    at_once: int = AT_ONCE,
    failed: Callable[[Item, OSError], Done] | None = None,
) -> Response | Ordered:
    """Do the work for each item, and make the answer of what came out, in the same order.

    What takes longer holds back the connection's next requests: an answer may be far larger than
    its request, and a client could have hundreds of them made that it does not read.

    Work that raises a ColdError has done nothing, and is done again. `failed` is told of what
    cannot be read or written, and gives what comes out instead.
    """
    done: list[Done] = []
    if len(items) <= at_once:
        try:
            for item in items:
                done.append(work(item))  # noqa: PERF401 - what is done before an error stays done
            return respond(done)
        except ColdError:
            pass
        except OSError:
            if failed is None:
                raise
    rest = in_turns(items[len(done) :], work, offload, at_once=at_once, failed=failed)
    return Ordered(_answer_later(done, rest, respond, at_once))


async def _answer_later(
    done: list[Done],
    rest: Coroutine[None, None, list[Done]],
    respond: Callable[[list[Done]], Response],
    at_once: int,
) -> Response | Large:
    done += await rest
    return answer_of(len(done), lambda: respond(done), at_once=at_once)


async def in_turns(
    items: Sequence[Item],
    work: Callable[[Item], Done],
    offload: Offload,
    *,
    at_once: int = AT_ONCE,
    failed: Callable[[Item, OSError], Done] | None = None,
) -> list[Done]:
    """Do the work for each item, a few at a time; `failed` is told of the disk's errors."""
    done: list[Done] = []
    for number, item in enumerate(items, 1):
        try:
            done.append(work(item))
        except ColdError:
            done.append(await _do_warmed(item, work, offload, failed))
        except OSError as error:
            if failed is None:
                raise
            done.append(failed(item, error))
        if number % at_once == 0:
            await asyncio.sleep(0)
    return done


async def _do_warmed(
    item: Item,
    work: Callable[[Item], Done],
    offload: Offload,
    failed: Callable[[Item, OSError], Done] | None,
) -> Done:
    try:
        return await warmed(partial(work, item), offload)
    except OSError as error:
        if failed is None:
            raise
        return failed(item, error)


async def in_any_order(
    items: Sequence[Item],
    work: Callable[[Item], Done],
    offload: Offload,
    failed: Callable[[Item, OSError], Done],
) -> list[Done]:
    """Do the work for each item, a few at a time; a thread reads for all of those at once.

    For look-ups that do not depend on each other: the results are in order, the work is not.
    """
    done: list[Done] = []
    for some in pieces(items):
        if done:
            await asyncio.sleep(0)
        done += await _look_up_all(some, work, offload, failed)
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


def pieces(items: Sequence[Item], at_once: int = AT_ONCE) -> Iterator[Sequence[Item]]:
    """Yield the items so many at a time, in their order."""
    for start in range(0, len(items), at_once):
        yield items[start : start + at_once]
