"""What the scraper's ledger reads back, of a broker that may go away meanwhile (PRJ-02)."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from examples.final_project.scraper import ledger
from examples.final_project.scraper.facts import CONTENT_HEADER, NAME_HEADER

#: More often than it may be asked in vain.
POLLS_MAX = 10 * int(ledger.SECONDS_MAX / ledger.POLL_SECONDS)


class Record:
    """A message, or the end of a partition, or what is wrong with it."""

    def __init__(self, number=0, error=None):
        self._number = number
        self._error = error and KafkaError(error)

    def error(self):
        return self._error

    def topic(self):
        return "rockets"

    def partition(self):
        return 0

    def headers(self):
        return [(NAME_HEADER, b"rocket-%d" % self._number), (CONTENT_HEADER, b"content")]


class FakeConsumer:
    """Gives what it was made with, a poll after the other, then nothing any more."""

    def __init__(self, *polls):
        self._polls = list(polls)
        self.asked = 0

    def consume(self, _messages, _seconds):
        self.asked += 1
        assert self.asked < POLLS_MAX, "it is asked for ever"
        return self._polls.pop(0) if self._polls else []


END = Record(error=KafkaError._PARTITION_EOF)


def test_what_a_topic_holds_is_read_to_its_end():
    consumer = FakeConsumer([Record(1)], [], [Record(2), Record(1), END])
    assert len(ledger.read_to_ends(consumer, {("rockets", 0)})) == 2


def test_a_broker_that_goes_away_meanwhile_is_not_waited_for_without_end():
    consumer = FakeConsumer([Record(1)])
    with pytest.raises(KafkaException) as refused:
        ledger.read_to_ends(consumer, {("rockets", 0)})
    assert refused.value.args[0].code() == KafkaError._TIMED_OUT


def test_a_broker_that_is_slow_is_waited_for():
    slow = [[]] * int(ledger.SECONDS_MAX / ledger.POLL_SECONDS - 1)
    consumer = FakeConsumer(*slow, [Record(1)], *slow, [END])
    assert len(ledger.read_to_ends(consumer, {("rockets", 0)})) == 1
