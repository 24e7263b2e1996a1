"""Takes a request to the coordinator of its group: what handlers of group APIs share.

The decision is made before the handler returns, so a client's requests take effect in their order.
With one replica the answer is there at once, unless it depends on what other members do.
"""

from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from strom.broker.context import Context, Waiting
from strom.broker.pending import Pending
from strom.broker.shard import Shard
from strom.groups.committing import Commit
from strom.groups.machine import GroupMachine
from strom.replicated.machine import Decision, KeyValue, Wait
from strom.wire.errors import ErrorCode, KafkaError

Asked = TypeVar("Asked")
Reply = TypeVar("Reply")
Response = TypeVar("Response")

Decide = Callable[[GroupMachine, Asked, int], Decision[KeyValue, Reply | Wait]]
Codes = list[ErrorCode]

#: So many offsets are a batch of the coordinator's log: it has room for the metadata of all.
OFFSETS_PER_BATCH: Final = 200


def shard_of(group_id: str, context: Context) -> Shard[GroupMachine]:
    """Return the coordinator of the group; refuse an empty id, as no group can have it."""
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    return context.parts.groups.shard_for(group_id)


def settle(
    shard: Shard[GroupMachine],
    decide: Decide[Asked, Reply],
    asked: Asked,
    now_ms: int,
    told: Callable[[Reply | KafkaError], Response],
) -> Response | Coroutine[Any, Any, Response] | Waiting:
    """Have the coordinator decide; answer with what `told` makes of its reply or refusal."""
    try:
        reply = shard.carry_out(decide(shard.machine, asked, now_ms))
    except KafkaError as error:
        return told(error)
    if isinstance(reply, Pending):
        return Waiting(reply, told)
    if isinstance(reply, Coroutine):
        return settle_later(reply, told)
    return told(reply)


async def settle_later(
    coming: Coroutine[Any, Any, Reply], told: Callable[[Reply | KafkaError], Response]
) -> Response:
    """Answer once the reply is there."""
    try:
        reply = await coming
    except KafkaError as error:
        return told(error)
    return told(reply)


def commit(asked: Commit, context: Context) -> Codes | Coroutine[Any, Any, Codes]:
    """Have the group's coordinator commit the offsets, many of them in several batches.

    Return a code for each. Each batch is in the log whole or not at all.
    """
    offsets = asked.offsets
    if len(offsets) <= OFFSETS_PER_BATCH:
        return commit_batch(asked, context)
    begun = [
        commit_batch(asked._replace(offsets=offsets[start : start + OFFSETS_PER_BATCH]), context)
        for start in range(0, len(offsets), OFFSETS_PER_BATCH)
    ]
    return codes_of_all(begun)


def commit_batch(asked: Commit, context: Context) -> Codes | Coroutine[Any, Any, Codes]:
    """Have the coordinator commit the offsets in one decision."""
    try:
        shard = context.parts.groups.shard_for(asked.group_id)
        codes = shard.run(shard.machine.commit_offsets, asked, context.now_ms)
    except KafkaError as error:
        return [error.code] * len(asked.offsets)
    return codes if isinstance(codes, list) else committed_later(codes, len(asked.offsets))


async def committed_later(coming: Coroutine[Any, Any, Codes], count: int) -> Codes:
    """Return the codes once the offsets are committed, or cannot be."""
    try:
        return await coming
    except KafkaError as error:
        return [error.code] * count


async def codes_of_all(begun: list[Codes | Coroutine[Any, Any, Codes]]) -> Codes:
    """Return the codes of all batches."""
    codes: Codes = []
    for each in begun:
        codes += each if isinstance(each, list) else await each
    return codes
