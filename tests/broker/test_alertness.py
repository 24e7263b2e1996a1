"""When the loop waits for a client's next request awake."""

from collections import deque

import pytest

from strom.broker.alertness import FOR_ANSWERED, FOR_TRANSACTIONS, Alertness

ONE, OTHER = 1, 2
ROUNDS_MAX, PASSED_AFTER_MISS = FOR_ANSWERED


class Loop:
    """Goes round when it is told to."""

    def __init__(self):
        self.soon = deque()

    def call_soon(self, callback):
        self.soon.append(callback)

    def go_round(self):
        for _ in range(len(self.soon)):
            self.soon.popleft()()


def expecting(times, who=ONE):
    loop = Loop()
    alertness = Alertness(loop)
    for _ in range(times):
        alertness.expect(who)
    return loop, alertness


def test_it_stays_awake_for_a_client_that_sends_one_request_after_the_other():
    _, alertness = expecting(PASSED_AFTER_MISS + 1)
    assert not alertness.is_awake
    alertness.expect(ONE)
    assert alertness.is_awake


def test_it_stays_awake_as_long_as_requests_come():
    loop, alertness = expecting(PASSED_AFTER_MISS + 2)
    for _ in range(10):
        for _ in range(ROUNDS_MAX - 1):
            loop.go_round()
        assert alertness.is_awake
        alertness.expect(ONE)
    assert len(loop.soon) == 1


def test_it_sleeps_when_nothing_comes_and_does_not_try_again_soon():
    loop, alertness = expecting(PASSED_AFTER_MISS + 2)
    for _ in range(ROUNDS_MAX):
        loop.go_round()
    assert not alertness.is_awake
    assert not loop.soon
    for _ in range(PASSED_AFTER_MISS):
        alertness.expect(ONE)
        assert not alertness.is_awake
    alertness.expect(ONE)
    assert alertness.is_awake


@pytest.mark.parametrize(("come", "pass_by"), [(0, 200), (9, 20), (200, 0)])
def test_it_tries_again_the_sooner_the_more_had_come(come, pass_by):
    loop, alertness = expecting(PASSED_AFTER_MISS + 2 + come)
    for _ in range(ROUNDS_MAX):
        loop.go_round()
    for _ in range(pass_by):
        alertness.expect(ONE)
        assert not alertness.is_awake
    alertness.expect(ONE)
    assert alertness.is_awake


def test_it_is_not_kept_awake_by_several_clients():
    loop, alertness = expecting(0)
    for _ in range(10 * PASSED_AFTER_MISS):
        alertness.expect(ONE)
        alertness.expect(OTHER)
    assert not alertness.is_awake
    assert not loop.soon


def test_a_producer_of_transactions_is_waited_for_longer_and_tried_again_sooner():
    loop, alertness = expecting(0)
    for _ in range(FOR_TRANSACTIONS.passed_after_miss + 2):
        alertness.expect(ONE, FOR_TRANSACTIONS)
    for _ in range(2):
        for _ in range(FOR_TRANSACTIONS.rounds_max - 1):
            loop.go_round()
            assert alertness.is_awake
        loop.go_round()
        assert not alertness.is_awake
        for _ in range(FOR_TRANSACTIONS.passed_after_miss):
            alertness.expect(ONE, FOR_TRANSACTIONS)
            assert not alertness.is_awake
        alertness.expect(ONE, FOR_TRANSACTIONS)


def test_others_get_the_processor_while_it_waits(monkeypatch):
    given = []
    monkeypatch.setattr("strom.broker.alertness._give_way", lambda: given.append(1))
    loop, _ = expecting(PASSED_AFTER_MISS + 2)
    for _ in range(ROUNDS_MAX):
        loop.go_round()
    assert len(given) == ROUNDS_MAX - 1
