"""ListTransactions (key 66): the transactional ids that this broker coordinates.

Behaviour:
- Filters narrow the list down together: by state, by producer id, by how long a transaction has
  been open, by a regular expression (RE2's syntax) that the whole transactional id must match.
  Names that are no state's are told.
- As long as a part of the coordinator's log is being read, COORDINATOR_LOAD_IN_PROGRESS.

Versions:
- v1 filters by duration, v2 by expression.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import re2

from strom.broker.answers import NO_THROTTLE
from strom.broker.context import Context
from strom.transactions.listing import Filter, listed
from strom.wire.errors import ErrorCode
from strom.wire.messages import kafka_message

if TYPE_CHECKING:
    from collections.abc import Callable

    from kio.schema.list_transactions.v2 import request as asked
    from kio.schema.list_transactions.v2 import response as answer

    from strom.transactions.transaction import Transaction
else:
    answer = kafka_message("list_transactions", "response")

KEY = 66
VERSIONS = range(3)


def handle(
    request: asked.ListTransactionsRequest, context: Context
) -> answer.ListTransactionsResponse:
    """List what passes all filters."""
    transactions = context.parts.transactions
    if transactions.is_loading:
        return response(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    try:
        matches = matcher(request.transactional_id_pattern)
    except re2.error:
        return response(ErrorCode.INVALID_REGULAR_EXPRESSION)
    wanted = Filter(
        request.state_filters, request.producer_id_filters, request.duration_filter, matches
    )
    known = (
        each for shard in transactions.shards() for each in shard.machine.transactions.values()
    )
    found = listed(known, wanted, context.now_ms)
    return response(ErrorCode.NONE, found, wanted.unknown_states())


def matcher(pattern: str | None) -> Callable[[str], object] | None:
    """Return what says whether an id matches the expression; None if all do."""
    if not pattern:
        return None
    options = re2.Options()
    options.log_errors = False
    matches: Callable[[str], object] = re2.compile(pattern, options).fullmatch
    return matches


def response(
    code: ErrorCode,
    found: list[Transaction] | None = None,
    unknown_states: tuple[str, ...] = (),
) -> answer.ListTransactionsResponse:
    """Tell what was found."""
    return answer.ListTransactionsResponse(
        throttle_time=NO_THROTTLE,
        error_code=code,
        unknown_state_filters=unknown_states,
        transaction_states=tuple(
            answer.TransactionState(
                transactional_id=each.transactional_id,
                producer_id=each.producer.id,
                transaction_state=each.state.title,
            )
            for each in found or ()
        ),
    )
