# Compiled by mypyc.
"""Fetch (key 1): hand out record batches as they lie in their files.

Behaviour:
- The answer waits until `min_bytes` can be read, an error is found, or `max_wait_ms` is over; it
  never waits for more than it may hold.
- Partitions are read in the order of the request, or of the session's turns, until `max_bytes`
  is used up. The first batch of the first partition that has one is returned whole, however
  large (KIP-74), so that no reader is ever stuck.
- A reader sees what is committed; with read_committed, what is before the last stable offset,
  and which transactions in it were aborted.
- Every answer has the high watermark, the last stable offset and the log's start.
- Sessions (KIP-227): see `broker.sessions`.
- Finding the records of many partitions, or of some that are not in memory, takes several turns
  on the loop; what is appended meanwhile is not missed.
- A partition that cannot be read is KAFKA_STORAGE_ERROR, and its directory is out of use from then
  on; one with a damaged batch is CORRUPT_MESSAGE to who comes upon it. The others are served.
- Followers are refused: every partition has one replica.

Versions:
- v4 is the first with record batches. v7: sessions. v12: diverging epochs. v13: topic ids.
"""

import asyncio
from collections.abc import Collection, Coroutine, Iterable
from functools import partial
from typing import Final, TypeAlias

from strom.broker.context import Context, Large, Waiting
from strom.broker.sessions import NO_SESSION, Resolved, Wanted, took_turn
from strom.broker.turns import AT_ONCE
from strom.log.cold import ColdError, warmed
from strom.replication.partition import Partition
from strom.replication.waiting import Waiter
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.fetch import (
    CONSUMER,
    TOPIC_IDS_FROM,
    FetchedPartition,
    FetchedTopic,
    FetchRequest,
    FetchResponse,
)
from strom.wire.produce import Leader

KEY: Final = 1
VERSIONS: Final = range(4, 19)

DEBUG_CONSUMER: Final = -2
NO_EPOCH: Final = -1

Reply: TypeAlias = FetchResponse | Large | Waiting | Coroutine[None, None, FetchResponse | Large]


class Harvest:
    """What one round of reading brings in."""

    __slots__ = (
        "_context",
        "_left_bytes",
        "_request",
        "_waiter",
        "fetched",
        "is_urgent",
        "partitions",
        "size_bytes",
    )

    def __init__(
        self, request: FetchRequest, context: Context, waiter: Waiter | None = None
    ) -> None:
        self._request = request
        self._context = context
        #: Is told of every partition when it is read.
        self._waiter = waiter
        self._left_bytes = request.bytes_max
        self.fetched: list[tuple[Wanted, FetchedPartition]] = []
        self.partitions: list[Partition] = []
        self.size_bytes = 0
        #: Something must be told at once, whatever was read.
        self.is_urgent = False

    def take_all(self, wanted: Iterable[Wanted]) -> None:
        """Read one partition after the other, as far as the answer is not full."""
        request, context = self._request, self._context
        for each in wanted:
            found, partition = read(
                each, request, context, self._left_bytes, whole_first=self.size_bytes == 0
            )
            self.fetched.append((each, found))
            size_bytes = 0
            if found.records is not None:
                size_bytes = found.records.size
                self.size_bytes += size_bytes
                self._left_bytes -= size_bytes
            elif found.error_code != ErrorCode.NONE or found.diverging is not None:
                self.is_urgent = True
            if partition is not None:
                self.partitions.append(partition)
                if self._waiter is not None:
                    self._waiter.add(partition, size_bytes)

    def take(self, wanted: Wanted) -> None:
        """Read one partition."""
        self.take_all((wanted,))

    def refuse(self, wanted: Wanted, error: OSError) -> None:
        """Say of a partition that the disk does not give it."""
        context, index = self._context, wanted.place.partition_index
        name = wanted.name if wanted.topic_id is None else context.topic_name(wanted.topic_id)
        code = context.parts.replicas.note_unreadable(name, index, error)
        self.fetched.append((wanted, FetchedPartition(index, code)))
        self.is_urgent = True

    def take_at_once(self, wanted: Collection[Wanted]) -> bool:
        """Read all; return False if they are too many, or need something from the disk."""
        if len(wanted) > AT_ONCE:
            return False
        try:
            self.take_all(wanted)
        except (ColdError, OSError):
            return False
        return True

    @property
    def missing_bytes(self) -> int:
        """How much must come before the answer is worth sending."""
        return self._request.bytes_min - self.size_bytes

    @property
    def is_enough(self) -> bool:
        """Whether there is something to be told now."""
        return self.size_bytes >= self._request.bytes_min or self.is_urgent or not self.fetched


def handle(request: FetchRequest, context: Context) -> Reply:
    """Read what is there; answer at once if that is enough, else when it is."""
    parts = context.parts
    request.bytes_max = min(request.bytes_max, parts.settings.number("fetch.max.bytes"))
    request.bytes_min = min(request.bytes_min, request.bytes_max)
    by_id = context.header.version >= TOPIC_IDS_FROM
    try:
        resolved = parts.fetch_sessions.resolve(request, by_id=by_id, now_ms=parts.host.now_ms())
    except KafkaError as error:
        return FetchResponse([], error.code)
    harvest = Harvest(request, context)
    if not harvest.take_at_once(resolved.wanted):
        return read_in_turns(request, resolved, context, deadline_of(request))
    if harvest.is_enough or request.wait_max_ms <= 0:
        return answer(harvest, resolved, context)
    return wait(harvest, request, resolved, context, deadline_of(request))


def deadline_of(request: FetchRequest) -> float:
    """Return until when its sender waits, by the loop's clock; few are told to."""
    return asyncio.get_running_loop().time() + request.wait_max_ms / 1000


def look(
    request: FetchRequest,
    resolved: Resolved,
    context: Context,
    deadline: float,
    *,
    is_time_up: bool,
) -> Reply:
    """Read once more what is there, and answer with it, or look again when there is more."""
    harvest = Harvest(request, context)
    if not harvest.take_at_once(resolved.wanted):
        return read_in_turns(request, resolved, context, deadline)
    if harvest.is_enough or is_time_up:
        return answer(harvest, resolved, context)
    return wait(harvest, request, resolved, context, deadline)


def wait(
    harvest: Harvest, request: FetchRequest, resolved: Resolved, context: Context, deadline: float
) -> Reply:
    """Look again when there is more, or time is up; it may be that by now."""
    left_ms = (deadline - asyncio.get_running_loop().time()) * 1000
    if left_ms <= 0:
        return answer(harvest, resolved, context)
    return Waiting(
        Waiter(harvest.partitions, harvest.missing_bytes, left_ms),
        lambda woken: look(request, resolved, context, deadline, is_time_up=not woken),
    )


async def read_in_turns(
    request: FetchRequest, resolved: Resolved, context: Context, deadline: float
) -> FetchResponse | Large:
    """Read what is too much for one turn of the loop, and again while it is not enough."""
    loop = asyncio.get_running_loop()
    is_time_up = False
    while True:
        left_ms = (deadline - loop.time()) * 1000
        waiter = Waiter((), request.bytes_min, left_ms)
        harvest = Harvest(request, context, waiter)
        await take_in_turns(list(resolved.wanted), harvest, waiter, context)
        if harvest.is_enough or is_time_up or left_ms <= 0:
            waiter.expire()
            return answer(harvest, resolved, context)
        is_time_up = not await waiter.wait()


async def take_in_turns(
    wanted: list[Wanted], harvest: Harvest, waiter: Waiter, context: Context
) -> None:
    """Read all, a few at a time; the waiter listens to each from when it is read."""
    try:
        if len(wanted) > AT_ONCE:
            # To find out what is wanted took its time, too.
            await asyncio.sleep(0)
        for number, each in enumerate(wanted, 1):
            try:
                await warmed(partial(harvest.take, each), context.parts.host.offload)
            except OSError as error:
                harvest.refuse(each, error)
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)
    except BaseException:
        waiter.expire()
        raise


def read(
    wanted: Wanted, request: FetchRequest, context: Context, left: int, *, whole_first: bool
) -> tuple[FetchedPartition, Partition | None]:
    """Read one partition, or say why it cannot be read."""
    place = wanted.place
    index = place.partition_index
    name = wanted.name
    if request.replica_id not in (CONSUMER, DEBUG_CONSUMER):
        return FetchedPartition(index, ErrorCode.NOT_LEADER_OR_FOLLOWER), None
    if wanted.topic_id is not None:
        name = context.topic_name(wanted.topic_id)
        if name is None:
            return FetchedPartition(index, ErrorCode.UNKNOWN_TOPIC_ID), None
    try:
        partition = context.parts.replicas.leader_of(name or "", index)
        partition.check_epoch(place.leader_epoch)
        diverging = None
        if place.last_fetched_epoch > NO_EPOCH:
            diverging = partition.diverging(place.last_fetched_epoch, place.offset)
        if diverging is not None:
            seen = partition.outline()
        else:
            seen = partition.read(
                place.offset,
                min(place.bytes_max, max(left, 0)),
                isolation_level=request.isolation_level,
                whole_first=whole_first,
            )
    except KafkaError as error:
        return refusal(name or "", index, error, context), None
    fetched = FetchedPartition(
        index,
        ErrorCode.NONE,
        seen.high_watermark,
        seen.last_stable_offset,
        seen.start_offset,
        seen.aborted,
        -1,
        seen.records,
        None,
        diverging,
    )
    return fetched, partition


def refusal(topic: str, index: int, error: KafkaError, context: Context) -> FetchedPartition:
    """Say why a partition cannot be read, and where to go instead if this broker does not lead."""
    leader = None
    if error.code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
        known = context.image.partition(topic, index)
        leader = None if known is None else Leader(known.leader, known.leader_epoch)
    return FetchedPartition(index, error.code, current_leader=leader)


def answer(harvest: Harvest, resolved: Resolved, context: Context) -> FetchResponse | Large:
    """Put the answer together; within a session, of what is new."""
    return finish(news_of(harvest.fetched, resolved), harvest, resolved, context)


def news_of(
    fetched: list[tuple[Wanted, FetchedPartition]], resolved: Resolved
) -> list[tuple[Wanted, FetchedPartition]]:
    """Return what the answer has to tell, and note that it is told; without a session, all."""
    if resolved.session is None:
        return list(fetched)
    told = list(fetched)
    if resolved.incremental:
        told = [(wanted, each) for wanted, each in fetched if wanted.has_news(each)]
    for wanted, each in told:
        failed = each.error_code != ErrorCode.NONE
        wanted.sent = None if failed else (each.high_watermark, each.log_start_offset)
    return told


def finish(
    told: list[tuple[Wanted, FetchedPartition]],
    harvest: Harvest,
    resolved: Resolved,
    context: Context,
) -> FetchResponse | Large:
    """Count what is sent, send those to the end of the session that got some, and answer."""
    context.parts.metrics.fetched_bytes += harvest.size_bytes
    session = resolved.session
    if session is None:
        return respond(told, NO_SESSION)
    served = [wanted for wanted, each in told if each.records is not None and each.records.size]
    took_turn(session, served)
    return respond(told, session.session_id)


def respond(
    fetched: list[tuple[Wanted, FetchedPartition]], session_id: int
) -> FetchResponse | Large:
    """Return the answer; one about many partitions is put together off the loop."""
    if len(fetched) <= AT_ONCE:
        return FetchResponse(grouped(fetched), ErrorCode.NONE, session_id)
    return Large(lambda: FetchResponse(grouped(fetched), ErrorCode.NONE, session_id))


def grouped(fetched: list[tuple[Wanted, FetchedPartition]]) -> list[FetchedTopic]:
    """Gather neighbouring partitions of one topic."""
    topics: list[FetchedTopic] = []
    for wanted, each in fetched:
        last = topics[-1] if topics else None
        if last is None or (last.name, last.topic_id) != (wanted.name or "", wanted.topic_id):
            last = FetchedTopic(wanted.name or "", wanted.topic_id, [])
            topics.append(last)
        last.partitions.append(each)
    return topics
