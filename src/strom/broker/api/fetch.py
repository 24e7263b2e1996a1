"""Fetch (key 1): hand out record batches as they lie in their files.

Behaviour:
- The answer waits until `min_bytes` can be read, an error is found, or `max_wait_ms` is over.
- Partitions are read in the order of the request, or of the session's turns, until `max_bytes`
  is used up. The first batch of the first partition that has one is returned whole, however
  large (KIP-74), so that no reader is ever stuck.
- A reader sees what is committed; with read_committed, what is before the last stable offset,
  and which transactions in it were aborted.
- Every answer has the high watermark, the last stable offset and the log's start.
- Sessions (KIP-227): see `broker.sessions`.
- Followers are refused: every partition has one replica.

Versions:
- v4 is the first with record batches. v7: sessions. v12: diverging epochs. v13: topic ids.
"""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import NamedTuple

from strom.broker.context import Context
from strom.broker.sessions import Resolved, Wanted, took_turn
from strom.replication.partition import Partition
from strom.replication.waiting import Waiter
from strom.wire.codec import FetchResponse
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.fetch import (
    CONSUMER,
    TOPIC_IDS_FROM,
    FetchedPartition,
    FetchedTopic,
    FetchRequest,
)
from strom.wire.produce import Leader

KEY = 1
VERSIONS = range(4, 19)

DEBUG_CONSUMER = -2
NO_EPOCH = -1


class Harvest(NamedTuple):
    """What one round of reading brought in."""

    fetched: list[tuple[Wanted, FetchedPartition]]
    partitions: list[Partition]
    size_bytes: int
    #: Something that must be told at once, whatever was read.
    urgent: bool


def handle(
    request: FetchRequest, context: Context
) -> FetchResponse | Coroutine[None, None, FetchResponse]:
    """Read what is there; answer at once if that is enough, else when it is."""
    parts = context.parts
    by_id = context.header.version >= TOPIC_IDS_FROM
    try:
        resolved = parts.fetch_sessions.resolve(request, by_id=by_id, now_ms=parts.host.now_ms())
    except KafkaError as error:
        return FetchResponse([], error.code)
    harvest = read_all(request, resolved.wanted, context)
    if (
        harvest.urgent
        or harvest.size_bytes >= request.bytes_min
        or request.wait_max_ms <= 0
        or not harvest.fetched
    ):
        return answer(harvest, resolved, context)
    # Made here and not in the coroutine, which begins later: an append in between must wake it.
    missing_bytes = request.bytes_min - harvest.size_bytes
    waiter = Waiter(harvest.partitions, missing_bytes, request.wait_max_ms)
    return wait_and_answer(request, resolved, waiter, context)


async def wait_and_answer(
    request: FetchRequest, resolved: Resolved, waiter: Waiter, context: Context
) -> FetchResponse:
    """Wait once for growth, or again if that was not enough, under one deadline."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + request.wait_max_ms / 1000
    while True:
        woken = await waiter.wait()
        harvest = read_all(request, resolved.wanted, context)
        missing_bytes = request.bytes_min - harvest.size_bytes
        if not woken or harvest.urgent or missing_bytes <= 0:
            return answer(harvest, resolved, context)
        waiter = Waiter(harvest.partitions, missing_bytes, (deadline - loop.time()) * 1000)


def read_all(request: FetchRequest, wanted: Iterable[Wanted], context: Context) -> Harvest:
    """Read every partition in turn until the answer is full."""
    left = min(request.bytes_max, context.settings.number("fetch.max.bytes"))
    fetched: list[tuple[Wanted, FetchedPartition]] = []
    partitions: list[Partition] = []
    total, urgent = 0, False
    for each in wanted:
        found = read(each, request, context, left, whole_first=total == 0)
        fetched.append((each, found[0]))
        if found[1] is not None:
            partitions.append(found[1])
        if found[0].records is not None:
            total += found[0].records.size
            left -= found[0].records.size
        elif found[0].error_code != ErrorCode.NONE or found[0].diverging is not None:
            urgent = True
    return Harvest(fetched, partitions, total, urgent)


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
        if place.last_fetched_epoch != NO_EPOCH:
            diverging = partition.diverging(place.last_fetched_epoch, place.offset)
            if diverging is not None:
                return FetchedPartition(index, diverging=diverging), partition
        seen = partition.read(
            place.offset,
            min(place.bytes_max, max(left, 0)),
            isolation_level=request.isolation_level,
            whole_first=whole_first,
        )
    except KafkaError as error:
        return refusal(name or "", index, error, context), None
    high_watermark, stable, start, records, aborted = seen
    return (
        FetchedPartition(
            index, ErrorCode.NONE, high_watermark, stable, start, aborted, -1, records
        ),
        partition,
    )


def refusal(topic: str, index: int, error: KafkaError, context: Context) -> FetchedPartition:
    """Say why a partition cannot be read, and where to go instead if this broker does not lead."""
    leader = None
    if error.code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
        known = context.image.partition(topic, index)
        leader = None if known is None else Leader(known.leader, known.leader_epoch)
    return FetchedPartition(index, error.code, current_leader=leader)


def answer(harvest: Harvest, resolved: Resolved, context: Context) -> FetchResponse:
    """Put the answer together; within a session, of what is new."""
    context.parts.metrics.fetched_bytes += harvest.size_bytes
    session = resolved.session
    if session is None:
        return FetchResponse(grouped(harvest.fetched, context))
    told = harvest.fetched
    if resolved.incremental:
        told = [(wanted, each) for wanted, each in told if wanted.has_news(each)]
    for wanted, each in told:
        failed = each.error_code != ErrorCode.NONE
        wanted.sent = None if failed else (each.high_watermark, each.log_start_offset)
    served = [wanted for wanted, each in told if each.records is not None and each.records.size]
    took_turn(session, served)
    return FetchResponse(grouped(told, context), session_id=session.session_id)


def grouped(fetched: list[tuple[Wanted, FetchedPartition]], context: Context) -> list[FetchedTopic]:
    """Gather neighbouring partitions of one topic."""
    topics: list[FetchedTopic] = []
    for wanted, each in fetched:
        last = topics[-1] if topics else None
        if last is None or (last.name, last.topic_id) != (wanted.name or "", wanted.topic_id):
            last = FetchedTopic(wanted.name or "", wanted.topic_id, [])
            topics.append(last)
        last.partitions.append(each)
    return topics
