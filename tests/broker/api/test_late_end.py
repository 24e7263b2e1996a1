"""An EndTxn of version 1 that the network kept until its producer's next transaction is open."""

import pytest

from tests.broker.api.conftest import create
from tests.broker.api.transacting import add, begin
from tests.conformance.raw import Raw

#: The last version without an epoch of its own for each transaction.
END_V1 = 4


def end(raw, name, who, *, committed=True):
    return raw.ask("end_txn", END_V1, who | {"transactional_id": name, "committed": committed})


@pytest.fixture
def newer(raw, broker):
    """Where the producer goes on that has given up waiting for an answer by the first one."""
    with Raw(broker.bootstrap) as connection:
        yield connection


def state(raw, name):
    (told,) = raw.ask("describe_transactions", 0, {"transactional_ids": [name]})[
        "transaction_states"
    ]
    return told["transaction_state"]


@pytest.mark.parametrize("committed", [True, False])
def test_a_late_end_touches_no_later_transaction(raw, newer, name, committed):
    create(raw, name)
    who = begin(raw, name)
    assert add(raw, name, who, name, [0]) == ["none"]
    # The first request by `raw` is on its way; the producer asks once more.
    assert end(newer, name, who, committed=committed)["error_code"] == "none"
    asked = until_added(newer, name, who)
    assert asked == ["none"]
    assert end(raw, name, who, committed=committed)["error_code"] == "concurrent_transactions"
    assert state(newer, name) == "Ongoing"
    assert end(newer, name, who)["error_code"] == "none"
    until_state(newer, name, "CompleteCommit")


def test_a_client_that_uses_both_connections_asks_again(raw, newer, name):
    create(raw, name)
    who = begin(raw, name)
    assert add(newer, name, who, name, [0]) == ["none"]
    doubted = 0
    while (code := end(raw, name, who)["error_code"]) == "concurrent_transactions":
        doubted += 1
    assert doubted > 0
    assert code == "none"
    until_state(newer, name, "CompleteCommit")


def until_added(raw, name, who):
    while (codes := add(raw, name, who, name, [0])) == ["concurrent_transactions"]:
        pass
    return codes


def until_state(raw, name, wanted):
    while (found := state(raw, name)) != wanted:
        assert found == "PrepareCommit"
