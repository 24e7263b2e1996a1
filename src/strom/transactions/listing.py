"""Which transactional ids there are, and what is known of one."""

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from strom.transactions.transaction import State, Transaction
from strom.wire.errors import ErrorCode, KafkaError

NO_DURATION = -1
STATES_BY_TITLE = {each.title: each for each in State}


class Filter(NamedTuple):
    """What is wanted of a list; nothing set means all."""

    states: Collection[str] = ()
    producer_ids: Collection[int] = ()
    #: Those that run for longer only. One that does not run counts as running since 1970.
    duration_ms: int = NO_DURATION
    #: Whether a transactional id is wanted.
    matches: Callable[[str], object] | None = None

    def unknown_states(self) -> tuple[str, ...]:
        """Return the names that are no state's."""
        return tuple(each for each in self.states if each not in STATES_BY_TITLE)

    def wants(self, transaction: Transaction, now_ms: int) -> bool:
        """Whether the transaction is to be listed."""
        return (
            (not self.producer_ids or transaction.producer.id in self.producer_ids)
            and (not self.states or transaction.state.title in self.states)
            and (self.duration_ms < 0 or now_ms - transaction.started_ms > self.duration_ms)
            and (self.matches is None or bool(self.matches(transaction.transactional_id)))
        )


def listed(transactions: Iterable[Transaction], wanted: Filter, now_ms: int) -> list[Transaction]:
    """Return the transactions that are wanted, by their ids."""
    found = [each for each in transactions if wanted.wants(each, now_ms)]
    return sorted(found, key=lambda each: each.transactional_id)


def described(transactions: dict[str, Transaction], transactional_id: str) -> Transaction:
    """Return what is known of the id; refuse one that is not known."""
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    found = transactions.get(transactional_id)
    if found is None:
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    return found
