"""Finds which of thousands of records a topic does not take, in a thread.

A batch is refused at once, for it is known by then that some of its records are at fault. Which
ones, the producer is told as soon as somebody has looked at all of them. Until then `Unnamed`
stands for their errors: an answer that nobody waits for can be given with it.
"""

from collections.abc import Callable

from strom.broker.context import Context
from strom.records.validate import InvalidRecords, RecordErrors, UnnamedRecords
from strom.wire.errors import KafkaError
from strom.wire.produce import ProduceTopicResponse


class Unnamed(tuple[tuple[int, str | None], ...]):
    """Stands for the errors of records that are still to be found."""

    find: Callable[[], KafkaError]


def record_errors_of(error: KafkaError) -> RecordErrors:
    """Return which records are at fault, or what stands for them."""
    if isinstance(error, UnnamedRecords):
        unnamed = Unnamed()
        unnamed.find = error.find
        return unnamed
    return error.record_errors if isinstance(error, InvalidRecords) else ()


def has_unnamed(answers: list[ProduceTopicResponse]) -> bool:
    """Whether records that are at fault are still to be found."""
    return any(
        isinstance(each.record_errors, Unnamed) for topic in answers for each in topic.partitions
    )


async def name_all(answers: list[ProduceTopicResponse], context: Context) -> None:
    """Put all records that are at fault into the answers, and what is wrong with them."""
    for topic in answers:
        for answer in topic.partitions:
            if isinstance(answer.record_errors, Unnamed):
                error = await context.parts.host.offload(answer.record_errors.find)
                answer.error_code = error.code
                answer.record_errors = record_errors_of(error)
                answer.error_message = error.message
