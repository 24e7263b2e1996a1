"""Requests that go to any broker, or to the coordinator of a group or of a transactional id.

A coordinator moves, starts, or is not there yet: what fails for such a reason is asked again, of
the coordinator that there is by then, until the connection's patience is at an end.
"""

from collections.abc import Callable
from enum import IntEnum
from typing import Any, TypeVar

from strom.spark.clock import Patience
from strom.spark.failure import UnreachableError
from strom.spark.link import Address, Link, drop_link, link_to
from strom.spark.options import Connection
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import Call

FIND_COORDINATOR = Call("find_coordinator", 4)
#: What a coordinator answers while it is on its way to an answer.
PASSING = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)
#: What ends the wait for a transaction of an earlier life sooner than the usual pause.
SOON_MS = 10
SOON = frozenset({ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.UNSTABLE_OFFSET_COMMIT})

Read = TypeVar("Read")


class Role(IntEnum):
    """What a coordinator coordinates; the values are the protocol's."""

    GROUP = 0
    TRANSACTION = 1


#: As many as a worker knows the way to.
COORDINATORS_MAX = 1000
_coordinators: dict[tuple[Connection, Role, str], Address] = {}


def ask_any(connection: Connection, ask: Callable[[Link], Read]) -> Read:
    """Ask whichever broker answers; `ask` may refuse the answer with a KafkaError."""

    def attempt() -> Read:
        reasons = []
        for address in connection.bootstrap:
            try:
                return _ask(address, connection, ask)
            except UnreachableError as error:
                reasons.append(str(error))
        raise UnreachableError("; ".join(reasons))

    return _until_it_works(connection, attempt)


class Coordinator:
    """The coordinator of a group or of a transactional id, wherever it is now."""

    def __init__(self, connection: Connection, role: Role, key: str) -> None:
        self._connection = connection
        self._role = role
        self._key = key

    def ask(self, call: Call, request: object, read: Callable[[Any], Read]) -> Read:
        """Ask until there is an answer; `read` may refuse it with a KafkaError."""

        def attempt() -> Read:
            try:
                return _ask(
                    self._address(),
                    self._connection,
                    lambda link: read(link.ask(call, request)),
                )
            except (UnreachableError, KafkaError):
                _coordinators.pop((self._connection, self._role, self._key), None)
                raise

        return _until_it_works(self._connection, attempt)

    def _address(self) -> Address:
        known = _coordinators.get((self._connection, self._role, self._key))
        if known is None:
            request = FIND_COORDINATOR.request.FindCoordinatorRequest(
                key_type=self._role, coordinator_keys=(self._key,)
            )
            known = ask_any(
                self._connection,
                lambda link: _read_coordinator(link.ask(FIND_COORDINATOR, request)),
            )
            if len(_coordinators) >= COORDINATORS_MAX:
                _coordinators.clear()
            _coordinators[self._connection, self._role, self._key] = known
        return known


def _read_coordinator(answer: Any) -> Address:  # noqa: ANN401 - a response
    (found,) = answer.coordinators
    refuse(found.error_code, found.error_message)
    return str(found.host), int(found.port)


def refuse(code: int, message: str | None = None) -> None:
    """Raise what the code says, if it says anything."""
    if code:
        raise KafkaError(ErrorCode(int(code)), message)


def _ask(address: Address, connection: Connection, ask: Callable[[Link], Read]) -> Read:
    try:
        return ask(link_to(address, connection))
    except UnreachableError:
        drop_link(address, connection)
        raise


def _until_it_works(connection: Connection, attempt: Callable[[], Read]) -> Read:
    usual = Patience(connection.patience_ms, connection.retry_backoff_ms)
    soon = Patience(connection.patience_ms, SOON_MS)
    while True:
        try:
            return attempt()
        except UnreachableError as error:
            usual.wait(error)
        except KafkaError as error:
            if error.code not in PASSING:
                raise
            (soon if error.code in SOON else usual).wait(error)
