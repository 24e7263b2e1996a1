"""Small answers wait for the end of the loop's turn, never for long."""

import asyncio

from strom.broker.outbox import CONNECTIONS_MAX, Outbox


class Sender:
    def __init__(self, sent, name):
        self._sent, self._name = sent, name

    def send_joined(self):
        self._sent.append(self._name)


def in_one_turn(act):
    """What was sent within the turn of the loop in which it happens, and what after it."""

    async def run():
        sent = []
        act(Outbox(asyncio.get_running_loop()), sent)
        within = list(sent)
        await asyncio.sleep(0)
        return within, sent[len(within) :]

    return asyncio.run(run())


def test_answers_go_out_when_the_turn_is_over_in_their_order():
    def act(outbox, sent):
        for name in "abc":
            outbox.put(Sender(sent, name))

    assert in_one_turn(act) == ([], ["a", "b", "c"])


def test_of_many_the_first_do_not_wait_for_the_last():
    names = list(range(CONNECTIONS_MAX + 1))

    def act(outbox, sent):
        for name in names:
            outbox.put(Sender(sent, name))

    assert in_one_turn(act) == (names[:-1], names[-1:])


def test_nobody_waits_for_what_takes_long():
    def act(outbox, sent):
        outbox.put(Sender(sent, "before"))
        outbox.send_all()
        outbox.put(Sender(sent, "after"))

    assert in_one_turn(act) == (["before"], ["after"])


async def test_the_next_turn_has_its_own_end():
    outbox, sent = Outbox(asyncio.get_running_loop()), []
    for name in "ab":
        outbox.put(Sender(sent, name))
        await asyncio.sleep(0)
    assert sent == ["a", "b"]
