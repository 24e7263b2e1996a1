"""Creates topics for handlers: many of them a portion at a time, and each whole or not at all.

What a request says about its topics is the same as if it were one decision: who collides with whom
is decided on in one portion, and so is who is named twice.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import TypeVar

from strom.broker.context import Context
from strom.broker.deciding import decide_in_turns
from strom.broker.turns import portions
from strom.metadata.topic_decisions import Created, NewTopic, check_total
from strom.metadata.topics import unified

#: A topic weighs as much as it has partitions, and this much more.
TOPIC_WEIGHT = 2
#: So heavy a portion takes two or three milliseconds to decide on.
WEIGHT_AT_ONCE = 60

Item = TypeVar("Item")


async def create_in_turns(
    context: Context,
    timeout: timedelta,  # noqa: ASYNC109 - the client's, and it has an answer of its own
    asked: Iterable[tuple[str, Item]],
    read: Callable[[Item], NewTopic],
    counts: Mapping[str, int],
    *,
    validate_only: bool = False,
) -> Created:
    """Return what became of every topic; `counts` has the partitions that are asked for by name."""
    check_total(sum(counts.values()))
    parts, defaults = context.parts, context.topic_defaults
    replies = await decide_in_turns(
        parts,
        timeout,
        await portions(
            asked,
            together=lambda item: unified(item[0]),
            weight=lambda item: TOPIC_WEIGHT + counts[item[0]],
            at_once=WEIGHT_AT_ONCE,
        ),
        lambda controller, portion: controller.create_topics(
            [read(topic) for _, topic in portion],
            defaults=defaults,
            rng=parts.host.rng,
            validate_only=validate_only,
        ),
    )
    return {name: outcome for reply in replies for name, outcome in reply.items()}
