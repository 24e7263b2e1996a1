"""Between the classic and the consumer protocol, both ways, while everybody goes on reading."""

import pytest

from strom.groups.classic.group import ClassicGroup, Phase, Protocol
from strom.groups.classic.leaving import Leaver
from strom.groups.consumer.draft import JOIN, SESSION, SYNC
from strom.groups.consumer.embedded import (
    Subscription,
    TopicPartition,
    read_assignment,
    read_subscription,
    read_version,
    write_assignment,
)
from strom.groups.consumer.group import ConsumerGroup
from strom.replicated.machine import Wait
from strom.wire.errors import ErrorCode
from strom.wire.primitives import INT16, MalformedFrame
from strom.wire.versioned import write_message
from tests.groups.consumer_table import (
    GROUP,
    INTERVAL_MS,
    REBALANCE_MS,
    SESSION_MS,
    Table,
    plain,
    topic_id,
)


def wants(*topics, owned=None, version=3, rack=None):
    """Return a subscription as a classic consumer writes it."""
    held = tuple(
        TopicPartition(topic=name, partitions=tuple(each)) for name, each in (owned or {}).items()
    )
    body = Subscription(topics=topics, user_data=None, owned_partitions=held, rack_id=rack)
    return INT16.pack(version) + write_message(body, version)


def told(data):
    """Return the assignment that a classic consumer is told."""
    return {each.topic: list(each.partitions) for each in read_assignment(data).assigned_partitions}


class Classic:
    """A consumer of the classic protocol that gives up only what it must."""

    def __init__(self, table, member_id, *topics, instance_id=None):
        self.table = table
        self.id = member_id
        self.topics = topics
        self.instance_id = instance_id
        self.generation_id = -1
        self.holds = {}

    def join(self):
        metadata = wants(*self.topics, owned=self.holds)
        return self.table.classic_join(self.id, metadata, instance_id=self.instance_id)

    def take_part(self):
        """Join and sync, as long as it is asked to."""
        for _ in range(5):
            joined = self.join()
            assert joined.error is ErrorCode.NONE
            self.id, self.generation_id = joined.member_id, joined.generation_id
            synced = self.table.classic_sync(
                self.id, self.generation_id, instance_id=self.instance_id
            )
            if synced.error is ErrorCode.NONE:
                self.holds = told(synced.assignment)
                return
            assert synced.error is ErrorCode.REBALANCE_IN_PROGRESS
        raise AssertionError("it is told to join again for ever")

    def beat(self):
        answer = self.table.classic_beat(self.id, self.generation_id, self.instance_id)
        if answer is ErrorCode.REBALANCE_IN_PROGRESS:
            self.take_part()
        else:
            assert answer is ErrorCode.NONE


@pytest.fixture
def table():
    return Table({"t": 4})


def classic_group(table, *names, topics=("t",), assignments=None):
    """Make a classic group of these members, at rest."""
    for name in names:
        table.classic_join("", wants(*topics), must_return=False, new_member_id=name)
    table.advance(100)
    while isinstance(table.group, ClassicGroup) and table.group.phase is not Phase.COMPLETING:
        for name in names:
            if name not in table.group.joining:
                table.classic_join(name, wants(*topics))
        table.advance(100)
    shared = assignments or {
        name: write_assignment({topic_id("t"): {index}}, 1, table.image)
        for index, name in enumerate(names)
    }
    for name in (table.group.leader, *names):
        table.classic_sync(name, table.group.generation_id, assignments=shared)
    assert table.group.phase is Phase.STABLE
    members = []
    for name in names:
        member = Classic(table, name, *topics)
        member.generation_id = table.group.generation_id
        member.holds = told(table.group.members[name].assignment)
        members.append(member)
    return members


# Classic to consumer.


def test_a_classic_group_becomes_a_consumer_group_when_such_a_member_joins():
    table = Table({"t": 3})
    a, b = classic_group(table, "a", "b")
    generation = table.group.generation_id
    reply = table.join("c", "t")
    group = table.group
    assert isinstance(group, ConsumerGroup)
    assert set(group.members) == {"a", "b", "c"}
    assert group.epoch == group.assignment_epoch == generation + 1
    assert plain(reply.assignment) == {"t": [2]}, "what the others had is still theirs"
    assert plain(group.members["a"].assigned) == a.holds == {"t": [0]}
    assert plain(group.members["b"].assigned) == b.holds == {"t": [1]}
    assert table.replayed() == table.groups


def test_its_members_go_on_as_they_were():
    table = Table({"t": 3})
    a, b = classic_group(table, "a", "b")
    table.join("c", "t")
    a.beat()
    b.beat()
    assert (a.holds, b.holds) == ({"t": [0]}, {"t": [1]})
    assert (a.generation_id, b.generation_id) == (table.group.epoch, table.group.epoch)
    for _ in range(20):
        table.advance(5000)
        a.beat()
        b.beat()
        if "c" in table.group.members:
            table.beat("c", table.group.members["c"].epoch)
    assert set(table.group.members) == {"a", "b", "c"}


def test_what_a_classic_member_must_give_up_is_given_on_when_it_says_so(table):
    (a,) = classic_group(
        table, "a", assignments={"a": write_assignment({topic_id("t"): range(4)}, 1, table.image)}
    )
    c = table.client("c", "t")
    assert c.holds == {}
    a.beat()
    assert a.holds == {"t": [0, 1]}
    table.advance(5000)
    c.beat()
    assert c.holds == {}, "it was told, and has not said that it gave them up"
    a.beat()
    table.advance(5000)
    c.beat()
    assert c.holds == {"t": [2, 3]}
    assert a.generation_id == table.group.epoch


def test_who_waits_in_a_round_is_told_to_join_again(table):
    classic_group(table, "a", "b")
    assert isinstance(table.classic_join("a", wants("t", "u")), Wait)
    assert table.group.phase is Phase.PREPARING
    table.join("c", "t")
    ((ticket, joined),) = [each for each in table.answers if each[0] == ("join", GROUP, "a")][-1:]
    assert ticket == ("join", GROUP, "a")
    assert joined.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert all(not key[0].startswith("classic") for key in table.timers)


def test_who_waits_for_its_leader_is_told_to_join_again(table):
    classic_group(table, "a", "b")
    leader = table.group.leader
    other = "b" if leader == "a" else "a"
    table.classic_join(leader, wants("t", "u"))
    table.classic_join(other, wants("t"))
    assert table.group.phase is Phase.COMPLETING
    generation = table.group.generation_id
    assert isinstance(table.classic_sync(other, generation), Wait)
    table.join("c", "t")
    answers = dict(table.answers)
    assert answers["sync", GROUP, other].error is ErrorCode.REBALANCE_IN_PROGRESS


def halves(table):
    """Make a classic group of two with two partitions each, of which the first leads."""
    given = {
        name: write_assignment({topic_id("t"): {index, index + 1}}, 1, table.image)
        for name, index in (("a", 0), ("b", 2))
    }
    a, b = classic_group(table, "a", "b", assignments=given)
    assert table.group.leader == "a"
    return a, b


def test_what_a_member_reads_until_it_has_synced_is_given_to_nobody(table):
    """Its leader has taken a partition from it, of which it does not know yet."""
    _, b = halves(table)
    table.classic_join("a", wants("t", "u", owned={"t": [0, 1]}))
    b.join()
    generation = b.generation_id = table.group.generation_id
    given = {
        name: write_assignment({topic_id("t"): indexes}, 1, table.image)
        for name, indexes in (("a", {0, 1}), ("b", {2}))
    }
    table.classic_sync("a", generation, assignments=given)
    assert table.group.phase is Phase.STABLE
    c = table.client("c", "t")
    assert plain(table.group.members["b"].assigned) == b.holds == {"t": [2, 3]}
    assert c.holds == {}
    assert table.replayed() == table.groups
    b.beat()
    assert b.holds == {"t": [2]}
    b.beat()
    table.advance(5000)
    c.beat()
    assert c.holds == {"t": [3]}


def test_what_members_read_in_the_midst_of_a_round_is_given_to_nobody(table):
    """What their leader gave them is noted no more: it began another round before it shared."""
    a, b = halves(table)
    table.classic_join("a", wants("t", "u", owned=a.holds))
    b.join()
    assert table.group.phase is Phase.COMPLETING
    table.classic_join("a", wants("t", owned=a.holds))
    assert table.group.phase is Phase.PREPARING
    assert {each.assignment for each in table.group.members.values()} == {b""}
    c = table.client("c", "t")
    assert c.holds == {}
    for each in (a, b):
        assert plain(table.group.members[each.id].assigned) == each.holds
    assert table.replayed() == table.groups


def test_what_two_members_say_to_hold_stays_with_one(table):
    halves(table)
    table.classic_join("a", wants("t", "u", owned={"t": [0, 1, 2]}))
    table.classic_join("b", wants("t", owned={"t": [1, 2, 3]}))
    table.client("c", "t")
    held = {name: plain(each.assigned) for name, each in table.group.members.items()}
    assert (held["a"], held["b"]) == ({"t": [0, 1]}, {"t": [2, 3]})


def test_what_two_members_say_to_hold_stays_with_one_also_where_nothing_is_noted(table):
    a, b = halves(table)
    table.classic_join("a", wants("t", "u", owned=a.holds))
    b.join()
    table.classic_join("a", wants("t", owned={"t": [0, 1, 2]}))
    assert {each.assignment for each in table.group.members.values()} == {b""}
    table.client("c", "t")
    held = {name: plain(each.assigned) for name, each in table.group.members.items()}
    assert (held["a"], held["b"]) == ({"t": [0, 1, 2]}, {"t": [3]})


def test_a_group_in_its_first_round_becomes_a_consumer_group(table):
    assert isinstance(
        table.classic_join("", wants("t"), must_return=False, new_member_id="a"), Wait
    )
    c = table.client("c", "t")
    a = Classic(table, "a", "t")
    a.take_part()
    table.advance(5000)
    c.beat()
    a.beat()
    c.beat()
    assert sorted(a.holds["t"] + c.holds["t"]) == [0, 1, 2, 3]


def test_the_sessions_of_classic_members_are_their_own(table):
    classic_group(table, "a")
    table.join("c", "t")
    assert table.timers[SESSION, GROUP, "a"] == table.now_ms + SESSION_MS
    table.advance(SESSION_MS)
    assert "a" not in table.group.members


def test_an_empty_classic_group_makes_way(table):
    (a,) = classic_group(table, "a")
    table.classic_leave(Leaver(a.id))
    assert table.group.is_empty
    reply = table.join("c", "t")
    assert (reply.epoch, plain(reply.assignment)) == (2, {"t": [0, 1, 2, 3]})
    assert table.replayed() == table.groups


@pytest.mark.parametrize("policy", ["disabled", "DOWNGRADE"])
def test_a_group_stays_classic_where_upgrades_are_not_allowed(policy):
    table = Table({"t": 4}, group_consumer_migration_policy=policy)
    classic_group(table, "a")
    assert table.refused(lambda: table.join("c", "t")) is ErrorCode.GROUP_ID_NOT_FOUND
    assert isinstance(table.group, ClassicGroup)


def test_a_group_that_is_too_large_stays_classic():
    table = Table({"t": 4}, group_consumer_max_size=1)
    classic_group(table, "a", "b")
    assert table.refused(lambda: table.join("c", "t")) is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_for_something_else_stays_classic(table):
    table.classic_join("", b"what", protocol_type="connect", must_return=False, new_member_id="a")
    assert table.refused(lambda: table.join("c", "t")) is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_of_which_nothing_can_be_known_stays_classic(table):
    table.classic_join("", b"\0", must_return=False, new_member_id="a")
    assert table.refused(lambda: table.join("c", "t")) is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_with_an_assignor_of_its_own_stays_classic(table):
    own = write_assignment({topic_id("t"): {0}}, 1, table.image)[:-4] + b"\0\0\0\1x"
    classic_group(table, "a", assignments={"a": own})
    assert table.refused(lambda: table.join("c", "t")) is ErrorCode.GROUP_ID_NOT_FOUND


def test_only_a_member_that_joins_changes_the_protocol(table):
    classic_group(table, "a")
    for epoch in (1, -1):
        refused = table.refused(lambda at=epoch: table.beat("c", at))
        assert refused is ErrorCode.GROUP_ID_NOT_FOUND


# Members of the classic protocol in a consumer group.


def test_a_classic_member_joins_a_consumer_group(table):
    c = table.client("c", "t")
    table.advance(INTERVAL_MS)
    named = table.classic_join("", wants("t"), new_member_id="a")
    assert (named.error, named.member_id) == (ErrorCode.MEMBER_ID_REQUIRED, "a")
    a = Classic(table, "a", "t")
    a.take_part()
    assert a.holds == {}
    table.settle(c)
    a.beat()
    assert (a.holds, c.holds) == ({"t": [2, 3]}, {"t": [0, 1]})


def test_a_classic_member_without_a_round_trip_for_its_id(table):
    table.client("c", "t")
    joined = table.classic_join("", wants("t"), must_return=False, new_member_id="a")
    assert (joined.error, joined.member_id) == (ErrorCode.NONE, "a")
    assert (joined.protocol, joined.protocol_type, joined.leader) == ("range", "consumer", "")
    assert joined.members == ()


def test_a_classic_member_is_told_in_the_version_that_it_speaks(table):
    table.client("c", "t")
    table.advance(INTERVAL_MS)
    joined = table.classic_join("", wants("t", version=1), must_return=False, new_member_id="a")
    synced = table.classic_sync("a", joined.generation_id)
    assert read_version(synced.assignment) == 1
    assert (synced.protocol_type, synced.protocol) == ("consumer", "range")


def test_a_classic_member_waits_until_there_is_a_step_to_take(table):
    c = table.client("c", "t")
    table.advance(INTERVAL_MS)
    a = Classic(table, "a", "t")
    a.take_part()
    assert table.classic_beat("a", a.generation_id) is ErrorCode.NONE, "nothing is free yet"
    c.beat()
    assert table.classic_beat("a", a.generation_id) is ErrorCode.NONE
    c.beat()
    assert table.classic_beat("a", a.generation_id) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_group_of_classic_members_alone_follows_its_topics_and_its_epochs():
    """They stay in a consumer group where downgrades are not allowed."""
    table = Table({"t": 2}, group_consumer_migration_policy="upgrade")
    c = table.client("c", "t")
    a = Classic(table, "a", "t")
    a.take_part()
    c.leave()
    table.advance(INTERVAL_MS)
    a.beat()
    a.beat()
    assert a.holds == {"t": [0, 1]}
    table.set_topic("t", 3)
    table.advance(INTERVAL_MS)
    a.beat()
    assert a.holds == {"t": [0, 1, 2]}


def test_a_classic_member_that_does_not_sync_or_join_in_time_is_out(table):
    c = table.client("c", "t")
    table.advance(INTERVAL_MS)
    joined = table.classic_join("", wants("t"), must_return=False, new_member_id="a")
    assert table.timers[SYNC, GROUP, "a"] == table.now_ms + REBALANCE_MS
    table.classic_sync("a", joined.generation_id)
    assert (SYNC, GROUP, "a") not in table.timers
    table.settle(c)
    assert table.classic_beat("a", joined.generation_id) is ErrorCode.REBALANCE_IN_PROGRESS
    due = table.timers[JOIN, GROUP, "a"]
    table.advance(1000)
    table.classic_beat("a", joined.generation_id)
    assert table.timers[JOIN, GROUP, "a"] == due, "it has its time once"
    while table.now_ms < due:
        table.advance(5000)
        c.beat()
        if "a" in table.group.members:
            table.classic_beat("a", joined.generation_id)
    assert (JOIN, GROUP, "a") in table.came
    assert set(table.group.members) == {"c"}


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({"generation_id": 7}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "z"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "c"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"instance_id": "y"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"protocol": "roundrobin"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_who_is_not_of_the_generation_is_refused(table, said, code):
    table.client("c", "t")
    joined = table.classic_join("", wants("t"), must_return=False, new_member_id="a")
    asked = {"member_id": "a", "generation_id": joined.generation_id} | said
    assert table.refused(lambda: table.classic_sync(**asked)) is code
    if not set(said) & {"protocol", "protocol_type"}:
        assert table.refused(lambda: table.classic_beat(**asked)) is code


@pytest.mark.parametrize(
    "said", [{"protocol_type": "connect"}, {"protocols": (Protocol("sticky", wants("t")),)}]
)
def test_protocols_that_the_others_do_not_have_are_refused(table, said):
    table.client("c", "t")
    table.classic_join("", wants("t"), must_return=False, new_member_id="a")
    joined = table.classic_join("", wants("t"), must_return=False, new_member_id="b", **said)
    assert joined.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_subscription_that_cannot_be_read_is_refused(table):
    table.client("c", "t")
    joined = table.classic_join("", b"", must_return=False, new_member_id="a")
    assert joined.error is ErrorCode.UNKNOWN_SERVER_ERROR


def test_classic_members_are_refused_where_there_is_no_migration():
    table = Table({"t": 4}, group_consumer_migration_policy="disabled")
    table.client("c", "t")
    joined = table.classic_join("", wants("t"), must_return=False, new_member_id="a")
    assert joined.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_members_of_both_protocols_leave_by_the_classic_request(table):
    table.client("c", "t")
    table.client("d", "t", instance_id="x")
    table.classic_join("", wants("t"), must_return=False, new_member_id="a")
    codes = table.classic_leave(
        Leaver("c"), Leaver("", "x"), Leaver("z"), Leaver("", "y"), Leaver("no", "x")
    )
    assert codes == (
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
    )
    assert set(table.group.members) == {"a"}


def test_nobody_leaves_and_nothing_changes(table):
    table.client("c", "t")
    before = len(table.log)
    assert table.classic_leave(Leaver("z")) == (ErrorCode.UNKNOWN_MEMBER_ID,)
    assert len(table.log) == before


# Consumer to classic.


def test_a_consumer_group_becomes_classic_when_its_last_such_member_leaves(table):
    c = table.client("c", "t")
    a = Classic(table, "a", "t")
    table.advance(INTERVAL_MS)
    a.take_part()
    table.settle(c)
    a.beat()
    epoch = table.group.epoch
    c.leave()
    group = table.group
    assert isinstance(group, ClassicGroup)
    assert (group.phase, group.generation_id) == (Phase.PREPARING, epoch)
    assert (group.protocol_type, group.protocol, group.leader) == ("consumer", "range", "a")
    assert told(group.members["a"].assignment) == a.holds
    assert table.classic_beat("a", epoch) is ErrorCode.REBALANCE_IN_PROGRESS
    assert all(not key[0].startswith("consumer") for key in table.timers)
    assert table.replayed() == table.groups
    joined = table.classic_join("a", wants("t"))
    assert (joined.generation_id, joined.leader) == (epoch + 1, "a")


def test_what_a_member_still_reads_is_given_to_nobody_when_the_group_changes_back_and_forth(table):
    (a,) = classic_group(
        table, "a", assignments={"a": write_assignment({topic_id("t"): range(4)}, 1, table.image)}
    )
    table.join("c", "t")
    assert plain(table.group.targets["a"]) == {"t": [0, 1]}, "what it shall have"
    table.beat("c", -1)
    assert isinstance(table.group, ClassicGroup)
    assert told(table.group.members["a"].assignment) == a.holds == {"t": [0, 1, 2, 3]}
    d = table.client("d", "t")
    assert d.holds == {}
    assert isinstance(table.group, ConsumerGroup)
    assert plain(table.group.members["a"].assigned) == a.holds


def test_what_a_member_is_told_to_give_up_is_still_its_own_when_the_group_becomes_classic(table):
    whole = write_assignment({topic_id("t"): range(4)}, 1, table.image)
    (a,) = classic_group(table, "a", assignments={"a": whole})
    c = table.client("c", "t")
    a.join()
    assert plain(table.group.members["a"].revoking) == {"t": [2, 3]}, "and it has not yet"
    c.leave()
    assert told(table.group.members["a"].assignment) == a.holds


@pytest.mark.parametrize("way", ["session", "leave group"])
def test_a_consumer_group_becomes_classic_however_its_last_such_member_goes(table, way):
    table.client("c", "t")
    a = Classic(table, "a", "t")
    a.take_part()
    if way == "session":
        for _ in range(SESSION_MS // 5000):
            table.advance(5000)
            if isinstance(table.group, ConsumerGroup):
                a.beat()
    else:
        table.classic_leave(Leaver("c"))
    assert isinstance(table.group, ClassicGroup)
    assert set(table.group.members) == {"a"}


@pytest.mark.parametrize("policy", ["disabled", "upgrade"])
def test_a_consumer_group_stays_one_where_downgrades_are_not_allowed(policy):
    table = Table({"t": 4}, group_consumer_migration_policy="bidirectional")
    c = table.client("c", "t")
    Classic(table, "a", "t").take_part()
    other = Table({"t": 4}, group_consumer_migration_policy=policy)
    table.machine.see(table.image, other.machine.settings)
    c.leave()
    assert isinstance(table.group, ConsumerGroup)
    assert set(table.group.members) == {"a"}


def test_a_consumer_group_stays_one_if_it_is_too_large_for_a_classic_one():
    table = Table({"t": 4}, group_max_size=1)
    c = table.client("c", "t")
    for name in "ab":
        table.classic_join("", wants("t"), must_return=False, new_member_id=name)
    c.leave()
    assert isinstance(table.group, ConsumerGroup)


def test_an_empty_consumer_group_makes_way_for_a_classic_one(table):
    table.client("c", "t").leave()
    assert isinstance(table.classic_join("", wants("t"), must_return=False), Wait)
    assert isinstance(table.group, ClassicGroup)
    assert table.replayed()[GROUP].id == GROUP


def test_an_empty_consumer_group_does_not_know_members_of_another_time(table):
    table.client("c", "t").leave()
    assert table.classic_join("old", wants("t")).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert isinstance(table.group, ConsumerGroup)


def test_a_static_member_comes_back_with_the_other_protocol(table):
    """It takes its place, also without having left: it is another program by now (GRP-16)."""
    c = table.client("c", "t", instance_id="x")
    d = table.client("d", "t")
    table.settle(c, d)
    a = Classic(table, "", "t", instance_id="x")
    joined = table.classic_join("", wants("t"), instance_id="x", new_member_id="a")
    assert (joined.error, joined.member_id) == (ErrorCode.NONE, "a")
    a.id, a.generation_id = "a", joined.generation_id
    synced = table.classic_sync("a", a.generation_id, instance_id="x")
    assert told(synced.assignment) == c.holds
    assert isinstance(table.group, ConsumerGroup)
    assert set(table.group.members) == {"a", "d"}


def test_the_last_consumer_member_comes_back_with_the_other_protocol(table):
    """Nothing has changed for anybody: the group is classic, and no round begins."""
    c = table.client("c", "t", instance_id="x")
    b = Classic(table, "b", "t")
    table.advance(INTERVAL_MS)
    b.take_part()
    table.settle(c)
    b.beat()
    joined = table.classic_join("", wants("t"), instance_id="x", new_member_id="a")
    assert (joined.error, joined.member_id) == (ErrorCode.NONE, "a")
    group = table.group
    assert isinstance(group, ClassicGroup)
    assert (group.phase, set(group.members)) == (Phase.STABLE, {"a", "b"})
    assert told(group.members["a"].assignment) == c.holds
    assert told(group.members["b"].assignment) == b.holds
    assert table.replayed() == table.groups


def test_the_last_consumer_member_comes_back_classic_and_wants_something_else(table):
    table.set_topic("u", 1)
    c = table.client("c", "t", instance_id="x")
    table.settle(c)
    table.classic_join("", wants("u"), instance_id="x", new_member_id="a")
    assert isinstance(table.group, ClassicGroup)
    assert table.group.phase in (Phase.PREPARING, Phase.COMPLETING)


def test_a_classic_static_member_comes_back_with_the_consumer_protocol(table):
    table.client("d", "t")
    table.advance(INTERVAL_MS)
    table.classic_join("", wants("t"), instance_id="x", new_member_id="a")
    reply = table.join("c", "t", instance_id="x")
    assert reply.epoch == table.group.epoch
    assert set(table.group.members) == {"c", "d"}
    assert table.group.members["c"].classic is None


def test_a_classic_static_member_joins_again_under_its_id(table):
    table.client("d", "t")
    table.classic_join("", wants("t"), instance_id="x", new_member_id="a")
    again = table.classic_join("a", wants("t"), instance_id="x")
    assert (again.error, again.member_id) == (ErrorCode.NONE, "a")
    other = table.classic_join("b", wants("t"), instance_id="x")
    assert other.error is ErrorCode.FENCED_INSTANCE_ID


# What classic consumers tell each other.


@pytest.mark.parametrize("version", range(6))
def test_subscriptions_of_all_versions_are_read(version):
    """A version that is not known yet begins as the newest that is."""
    known = min(version, 3)
    body = wants("t", "u", owned={"t": [1, 2]}, version=known, rack="r")
    data = INT16.pack(version) + body[2:]
    read = read_subscription(data)
    assert read.topics == ("t", "u")
    assert bool(read.owned_partitions) == (version >= 1)
    assert read.rack_id == ("r" if version >= 3 else None)


@pytest.mark.parametrize(
    "data", [b"", b"\0", b"\xff\xff\0\0\0\0", b"\0\0\0\0\0\5", b"\0\1\0\0\0\1"]
)
def test_what_is_no_subscription_is_said_to_be_none(data):
    with pytest.raises(MalformedFrame):
        read_subscription(data)
