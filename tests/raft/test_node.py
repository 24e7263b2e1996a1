"""The quorum's protocol: elections, votes and commits among nodes without a network."""

from random import Random
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from strom.raft.election import ElectionState
from strom.raft.node import LogEnd, Node, Role, VoteRequest
from strom.raft.voters import Listener, ReplicaKey, Voters
from tests.effort import examples


def key_of(number):
    return ReplicaKey(number, UUID(int=number))


def voters_of(*numbers):
    return Voters({each: (key_of(each), ()) for each in numbers})


class Quorum:
    """Some voters and the messages between them; time moves when a test says so."""

    def __init__(self, count, seed=0):
        voters = voters_of(*range(1, count + 1))
        self.nodes = {
            each: Node(key_of(each), voters, ElectionState(), LogEnd(0, 0), Random(seed + each))
            for each in voters.ids
        }
        self.saved = {each: [] for each in self.nodes}
        self.sent = []
        self.now_ms = 0
        #: (epoch, leader): every one that ever led.
        self.led = set()

    def note(self, number, effects):
        if effects.save is not None:
            self.saved[number].append(effects.save)
        self.sent.extend(effects.send)
        node = self.nodes[number]
        if node.role is Role.LEADER:
            self.led.add((node.election.epoch, number))

    def start(self, *numbers):
        for each in numbers or tuple(self.nodes):
            self.note(each, self.nodes[each].start(self.now_ms))

    def deliver(self, *, lost=()):
        """Hand over all that was sent, and what is sent because of it."""
        while self.sent:
            request = self.sent.pop(0)
            source = request.candidate.id
            if source in lost or request.target_id in lost:
                continue
            node = self.nodes[request.target_id]
            reply, effects = node.on_vote_request(request, self.now_ms)
            self.note(request.target_id, effects)
            self.note(source, self.nodes[source].on_vote_reply(reply, self.now_ms))

    def pass_time(self, milliseconds, *numbers):
        self.now_ms += milliseconds
        for each in numbers or tuple(self.nodes):
            self.note(each, self.nodes[each].on_time(self.now_ms))


def test_the_only_voter_leads_at_once_and_saves_once():
    quorum = Quorum(1)
    quorum.start()
    assert quorum.nodes[1].role is Role.LEADER
    assert quorum.saved[1] == [ElectionState(epoch=1, leader_id=1)]
    assert quorum.nodes[1].granting_ids == (1,)
    assert quorum.sent == []


def test_each_start_leads_in_a_higher_epoch():
    before = ElectionState(epoch=7, leader_id=1)
    node = Node(key_of(1), voters_of(1), before, LogEnd(7, 40), Random(0))
    assert node.start(0).save == ElectionState(epoch=8, leader_id=1)


def test_asking_whether_one_would_be_elected_raises_no_epoch():
    quorum = Quorum(3)
    quorum.start(1)
    assert quorum.nodes[1].role is Role.PROSPECTIVE
    assert {(each.epoch, each.is_pre_vote) for each in quorum.sent} == {(0, True)}
    assert quorum.saved[1] == []


def test_a_majority_elects_a_leader_in_the_next_epoch():
    quorum = Quorum(3)
    quorum.start(1)
    quorum.deliver(lost={3})
    assert quorum.led == {(1, 1)}
    assert quorum.saved[2] == [ElectionState(1, -1, key_of(1))]
    assert quorum.nodes[1].granting_ids == (1, 2)


def test_who_finds_no_majority_asks_again_later_and_no_epoch_rises():
    quorum = Quorum(3)
    quorum.start(1)
    for _ in range(5):
        quorum.deliver(lost={2, 3})
        quorum.pass_time(3000, 1)
    assert quorum.nodes[1].role is Role.PROSPECTIVE
    assert quorum.nodes[1].election.epoch == 0


def test_who_hears_from_a_leader_sees_no_need_for_an_election():
    quorum = Quorum(3)
    quorum.start(1)
    quorum.deliver()
    for each in (2, 3):
        quorum.note(each, quorum.nodes[each].on_leader(1, 1, quorum.now_ms))
    # Number 3 was cut off for a while and asks.
    quorum.now_ms += 10_000
    quorum.note(3, quorum.nodes[3].on_time(quorum.now_ms))
    quorum.deliver()
    assert quorum.nodes[1].role is Role.LEADER
    assert quorum.nodes[3].role is Role.PROSPECTIVE
    assert quorum.led == {(1, 1)}


def test_when_a_leader_is_gone_the_others_elect_one_of_them():
    quorum = Quorum(3)
    quorum.start(1)
    quorum.deliver()
    for each in (2, 3):
        quorum.note(each, quorum.nodes[each].on_leader(1, 1, quorum.now_ms))
    quorum.pass_time(10_000, 2, 3)
    quorum.deliver(lost={1})
    assert len({leader for epoch, leader in quorum.led if epoch > 1}) == 1


EMPTY = LogEnd(0, 0)


def request_of(number, *, epoch=1, log_end=EMPTY, is_pre_vote=False):
    return VoteRequest(1, epoch, key_of(number), log_end, is_pre_vote)


def test_a_vote_is_given_once_in_an_epoch():
    node = Node(key_of(1), voters_of(1, 2, 3), ElectionState(), LogEnd(0, 0), Random(0))
    assert node.on_vote_request(request_of(2), 0)[0].is_granted
    assert not node.on_vote_request(request_of(3), 0)[0].is_granted
    # It asks again because it missed the answer.
    assert node.on_vote_request(request_of(2), 0)[0].is_granted
    assert node.on_vote_request(request_of(3, epoch=2), 0)[0].is_granted
    assert not node.on_vote_request(request_of(2, epoch=1), 0)[0].is_granted


def test_who_led_in_an_epoch_and_came_back_votes_for_nobody_in_it():
    before = ElectionState(epoch=3, leader_id=1)
    node = Node(key_of(1), voters_of(1, 2, 3), before, EMPTY, Random(0))
    node.start(0)
    assert not node.on_vote_request(request_of(2, epoch=3), 0)[0].is_granted
    assert node.on_vote_request(request_of(2, epoch=3, is_pre_vote=True), 0)[0].is_granted


@pytest.mark.parametrize("is_pre_vote", [True, False])
@pytest.mark.parametrize(
    ("log_end", "is_granted"),
    [(LogEnd(4, 9), False), (LogEnd(3, 99), False), (LogEnd(4, 10), True), (LogEnd(5, 1), True)],
)
def test_only_who_has_at_least_as_much_gets_a_vote(log_end, is_granted, is_pre_vote):
    node = Node(key_of(1), voters_of(1, 2, 3), ElectionState(4), LogEnd(4, 10), Random(0))
    request = request_of(2, epoch=5, log_end=log_end, is_pre_vote=is_pre_vote)
    assert node.on_vote_request(request, 0)[0].is_granted is is_granted


def test_a_node_with_a_new_disk_is_no_voter():
    stranger = ReplicaKey(1, UUID(int=99))
    node = Node(stranger, voters_of(1), ElectionState(), LogEnd(0, 0), Random(0))
    assert node.start(0).save is None
    assert node.role is Role.UNATTACHED


def test_a_leader_yields_to_a_higher_epoch():
    quorum = Quorum(1)
    quorum.start()
    quorum.nodes[1].on_vote_request(request_of(2, epoch=9), 0)
    assert quorum.nodes[1].role is Role.UNATTACHED


def leading(count):
    quorum = Quorum(count)
    quorum.start(1)
    quorum.deliver()
    leader = quorum.nodes[1]
    assert leader.role is Role.LEADER
    return leader


def test_what_a_majority_has_flushed_is_committed():
    leader = leading(3)
    leader.on_appended(LogEnd(1, 10))
    assert leader.on_flushed(1, 10) == 0
    assert leader.on_flushed(2, 7) == 7
    assert leader.on_flushed(3, 9) == 9
    assert leader.on_flushed(2, 10) == 10
    # An answer that was under way for long takes nothing back.
    assert leader.on_flushed(2, 3) == 10


def test_what_earlier_leaders_wrote_is_committed_only_with_something_of_the_own_epoch():
    voters = voters_of(1, 2, 3)
    leader = Node(key_of(1), voters, ElectionState(4), LogEnd(4, 50), Random(0))
    other = Node(key_of(2), voters, ElectionState(4), LogEnd(4, 50), Random(1))
    requests = leader.start(0).send
    while requests:
        reply, _ = other.on_vote_request(requests[0], 0)
        requests = leader.on_vote_reply(reply, 0).send
    assert leader.role is Role.LEADER
    leader.on_flushed(1, 50)
    assert leader.on_flushed(2, 50) == 0
    leader.on_appended(LogEnd(5, 51))
    leader.on_flushed(1, 51)
    assert leader.on_flushed(2, 51) == 51


def test_voters_are_kept_with_their_addresses():
    voters = Voters.of(key_of(3), [Listener("CONTROLLER", "localhost", 9093)])
    assert Voters.read(voters.write()) == voters
    assert voters.includes(key_of(3))
    assert not voters.includes(key_of(4))


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(seed=some.integers(0, 2**16), count=some.integers(1, 5), data=some.data())
def test_no_two_ever_lead_in_one_epoch(seed, count, data):
    quorum = Quorum(count, seed)
    quorum.start()
    for _ in range(12):
        lost = data.draw(some.sets(some.integers(1, count), max_size=count))
        rng = Random(data.draw(some.integers(0, 99)))
        rng.shuffle(quorum.sent)
        quorum.deliver(lost=lost)
        quorum.pass_time(data.draw(some.integers(100, 4000)))
    epochs = [epoch for epoch, _ in quorum.led]
    assert len(epochs) == len(set(epochs))
    for saved in quorum.saved.values():
        assert [each.epoch for each in saved] == sorted(each.epoch for each in saved)
