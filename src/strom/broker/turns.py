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
from collections.abc import Callable, Coroutine, Hashable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from strom.broker.context import Large, Ordered
from strom.log.cold import FAILURES_MAX, ColdError, Fetch, Offload, Take, warmed

Item = TypeVar("Item")
Done = TypeVar("Done")
Response = TypeVar("Response")

#: So many take a few milliseconds.
AT_ONCE: Final = 200
#: So many are put into portions in as long a time.
SORTED_AT_ONCE: Final = 2000


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


def answer_of(
    count: int, build: Callable[[], Response], *, at_once: int = AT_ONCE
) -> Response | Large:
    """Return the answer about so many items; build and write one about many in a thread.

    What it is built of must be values that nobody changes.
    """
    return build() if count <= at_once else Large(build)


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


async def serve_each(
    cut: Iterable[Item], serve: Callable[[Item], Done | Coroutine[Any, Any, Done]]
) -> list[Done]:
    """Serve one piece of a request after the other, each in a turn of its own.

    What has to be waited for is waited for in the end, so that the pieces share the wait.
    """
    begun: list[Done | Coroutine[Any, Any, Done]] = []
    for piece in cut:
        if begun:
            await asyncio.sleep(0)
        begun.append(serve(piece))
    return [await each if isinstance(each, Coroutine) else each for each in begun]


async def portions(
    items: Iterable[Item],
    *,
    together: Callable[[Item], Hashable],
    weight: Callable[[Item], int] = lambda _: 1,
    at_once: int = AT_ONCE,
) -> list[list[Item]]:
    """Return the items a portion at a time; those that belong together are in the same one.

    A portion is no heavier than `at_once`, unless what belongs together is.
    """
    groups: dict[Hashable, tuple[list[Item], int]] = {}
    for number, item in enumerate(items, 1):
        group, weighs = groups.get(key := together(item), ([], 0))
        group.append(item)
        groups[key] = group, weighs + weight(item)
        if number % SORTED_AT_ONCE == 0:
            await asyncio.sleep(0)
    cut: list[list[Item]] = []
    left = 0
    for group, weighs in groups.values():
        if weighs > left or not cut:
            cut.append([])
            left = at_once
        cut[-1] += group
        left -= weighs
    return cut
