"""Classic groups over the wire: joining, syncing, leaving, static members, and what tools are told.

Each case is played to Strom and to Apache Kafka, whose answers are in `answers/groups.json`.
Rows: GRP-01, GRP-03, GRP-05, GRP-07, GRP-09, GRP-10, GRP-11, GRP-16.
"""

import pytest

from tests import nodes
from tests.conformance.grouping import (
    NEWEST,
    SHORT_MS,
    Talk,
    hurried,
    settled,
    share,
)
from tests.conformance.raw import Raw
from tests.conformance.transcript import check, is_peer, play

#: No waiting for more members, sessions that one can wait for, groups that are soon full.
SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 500,
    "group.max.session.timeout.ms": 100_000,
    "group.max.size": 3,
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 5,
}
#: The first version with static members.
STATIC_FROM = 5
SERVED = {11: (0, 9), 12: (0, 4), 13: (0, 5), 14: (0, 5), 15: (0, 6), 16: (0, 5), 42: (0, 2)}


@pytest.fixture(scope="module")
def strom_of_groups():
    process = nodes.StromProcess(nodes.new_directory("groups"), **SETTINGS)
    yield process.start()
    process.remove()


@pytest.fixture(scope="module")
def kafka_of_groups():
    if reason := nodes.java_missing():
        pytest.skip(reason)
    properties = [f"{name}={value}" for name, value in SETTINGS.items()]
    peer = nodes.KafkaProcess(nodes.new_directory("kafka-groups"), *properties).start()
    yield peer
    peer.remove()


@pytest.fixture(params=["strom", "kafka"])
def broker(request):
    return request.getfixturevalue(f"{request.param}_of_groups")


def version_of(api, version):
    return min(version, NEWEST[api])


def one_member_by_version(talk, version):
    a = talk.member("a")
    if a.join(version)["error_code"] == "member_id_required":
        a.join(version)
    sync, beat, leave = (
        version_of(api, version) for api in ("sync_group", "heartbeat", "leave_group")
    )
    a.beat(beat)
    a.sync(sync, given={a: b"all"})
    a.sync(sync)
    a.beat(beat)
    talk.describe(version=min(version, 6), include_authorized_operations=True)
    talk.list(version=min(version, 5))
    a.leave(version=leave)
    a.beat(beat)
    talk.delete(talk.group, version=min(version, 2))


def two_static_lives_by_version(talk, version):
    a = talk.member("a", instance="one")
    a.join(version)
    sync, beat = version_of("sync_group", version), version_of("heartbeat", version)
    a.sync(sync, given={a: b"all"})
    again = talk.member("again", instance="one")
    again.join(version)
    again.sync(sync)
    a.beat(beat)
    a.sync(sync)
    talk.describe(version=min(version, 6))


def names_and_times_are_checked(talk):
    a = talk.member("a")
    a.join(group_id="")
    for session_ms in (499, 100_001, -1, 0):
        a.join(session_timeout=session_ms)
    a.join(member_id="stranger")
    a.join(member_id="stranger", group_instance_id="one")
    a.join(protocols=[])
    a.join(protocol_type="")
    talk.list()
    a.beat(group_id="")
    a.beat(group_id=talk.topic("-none"))
    a.sync(group_id="", protocol_name="range")
    a.sync(group_id=talk.topic("-none"), protocol_name="range")
    a.sync(protocol_name=None)
    a.sync(protocol_type=None, protocol_name="range")
    a.leave()
    a.talk.group = ""
    a.leave()


def a_group_grows_and_shrinks(talk):
    a, b = talk.member("a"), talk.member("b")
    a.enter()
    a.joined()
    a.sync(given={a: b"all"})
    b.enter()
    a.beat_until("rebalance_in_progress")
    a.sync()
    a.send_join()
    a.joined()
    b.joined()
    b.send_sync()
    a.sync(given={a: b"left", b: b"right"})
    b.synced()
    a.beat()
    b.beat()
    talk.describe()
    a.leave()
    b.beat()
    b.join()
    b.sync(given={b: b"all"})
    a.beat()
    b.leave()
    talk.describe()


def the_leader_may_forget_members(talk):
    a, b = settled(talk, talk.member("a"), talk.member("b"))
    a.send_join()
    b.beat_until("rebalance_in_progress")
    b.join()
    a.joined()
    a.sync(given={a: b"all"})
    b.sync()
    talk.describe()


def a_member_comes_back_with_and_without_news(talk):
    a, b = settled(talk, talk.member("a"), talk.member("b"))
    b.join()
    b.beat()
    b.protocols = (("range", b"news"),)
    b.send_join()
    a.beat_until("rebalance_in_progress")
    a.join()
    b.joined()
    b.join()
    a.join()
    a.sync(given={a: b"1", b: b"2"})
    b.sync()
    a.send_join()
    b.beat_until("rebalance_in_progress")
    b.join()
    a.joined()


def a_round_begins_while_the_last_is_not_over(talk):
    a, b = talk.member("a"), talk.member("b")
    a.enter()
    a.joined()
    b.enter()
    a.beat_until("rebalance_in_progress")
    a.join()
    b.joined()
    b.send_sync()
    a.protocols = (("range", b"news"),)
    a.send_join()
    b.synced()
    b.join()
    a.joined()
    share(a, (a, b))


def protocols_are_voted_on(talk):
    a = talk.member("a", protocols=(("x", b"ax"), ("y", b"ay"), ("z", b"az")))
    b = talk.member("b", protocols=(("y", b"by"), ("x", b"bx")))
    c = talk.member("c", protocols=(("y", b"cy"), ("w", b"cw"), ("x", b"cx")))
    settled(talk, a, b, c)
    talk.describe()
    a.send_join()
    for each in (b, c):
        each.beat_until("rebalance_in_progress")
        each.send_join()
    for each in (a, b, c):
        each.joined()


def what_does_not_fit_is_refused(talk):
    (a,) = settled(talk, talk.member("a"))
    b = talk.member("b", protocols=(("other", b""),))
    b.join()
    b.protocols, b.kind = a.protocols, "connect"
    b.join()
    a.join(protocols=[{"name": "other", "metadata": b""}])
    a.sync(protocol_name="other")
    a.sync(protocol_type="connect")
    a.sync(generation_id=7)
    a.sync(member_id="stranger")
    a.sync(group_instance_id="one")
    a.beat(generation_id=0)
    a.beat(member_id="stranger")
    a.beat(group_instance_id="one")
    a.beat()


def any_kind_of_work_is_shared(talk):
    a = talk.member("a", kind="sr", protocols=(("v0", b"\x00\x01url"),))
    a.enter()
    a.joined()
    a.sync(given={a: b"\xff leads"})
    talk.describe()
    talk.list()


def a_group_is_full(talk):
    settled(talk, *(talk.member(name) for name in "abc"))
    talk.member("d").join()
    talk.member("e", instance="one").join()
    talk.describe()


def a_static_member_comes_back(talk):
    a, b = talk.member("a", instance="one"), talk.member("b", instance="two")
    settled(talk, a, b)
    again = talk.member("again", instance="two")
    again.join()
    again.sync()
    again.beat()
    b.beat()
    b.sync()
    b.join()
    b.leave()
    b.instance = None
    b.beat()
    a.beat()
    leader = talk.member("leader", instance="one")
    leader.join()
    leader.sync()
    a.beat()
    older = talk.member("older", instance="one")
    older.join(version=8)
    older.sync()
    talk.describe()


def a_static_member_comes_back_with_another_protocol(talk):
    both = (("range", b""), ("sticky", b""))
    a, b = (talk.member(name, instance=name, protocols=both) for name in "ab")
    settled(talk, a, b)
    again = talk.member("again", instance="b", protocols=both[1:])
    again.send_join()
    a.beat_until("rebalance_in_progress")
    a.join()
    again.joined()


def a_static_member_comes_back_in_a_round(talk):
    a, b = talk.member("a", instance="one"), talk.member("b", instance="two")
    settled(talk, a, b)
    a.send_join()
    b.beat_until("rebalance_in_progress")
    again = talk.member("again", instance="one")
    again.send_join()
    a.joined()
    b.join()
    again.joined()
    share(again, (again, b))


def a_static_member_comes_back_while_the_work_is_shared(talk):
    a, b = talk.member("a", instance="one"), talk.member("b", instance="two")
    a.join()
    b.send_join()
    a.beat_until("rebalance_in_progress")
    a.join()
    b.joined()
    b.send_sync()
    again = talk.member("again", instance="two")
    again.send_join()
    b.synced()
    a.join()
    again.joined()


def several_leave_at_once(talk):
    a, b = talk.member("a"), talk.member("b", instance="two")
    c = talk.member("c")
    settled(talk, a, b, c)
    stranger, by_name, unknown = talk.member("s"), talk.member("n"), talk.member("u")
    stranger.id, by_name.instance, unknown.instance = "stranger", "two", "three"
    a.leave(stranger, by_name, unknown)
    c.beat()
    c.join()
    talk.describe()


def members_that_leave_while_they_wait_are_told(talk):
    a, b = settled(talk, talk.member("a"), talk.member("b"))
    b.send_join(protocols=[{"name": "range", "metadata": b"news"}])
    a.beat_until("rebalance_in_progress")
    other = talk.member("other")
    other.id, other.generation = b.id, b.generation
    other.leave()
    b.joined()
    a.join()


def an_expected_member_leaves(talk):
    a = talk.member("a")
    a.join()
    a.leave()
    a.join()
    talk.describe()


def silence_ends_a_session(talk):
    a, b = talk.member("a"), talk.member("b", session_ms=SHORT_MS)
    settled(talk, a, b)
    a.beat_until("rebalance_in_progress")
    b.beat()
    a.join()
    a.sync(given={a: b"all"})
    talk.describe()


def who_does_not_come_back_in_time_is_out(talk):
    a, b = hurried(talk, talk.member("a"), talk.member("b"))
    a.send_join()
    a.joined()
    b.beat()


def who_does_not_fetch_its_part_in_time_is_out(talk):
    a, b = hurried(talk, talk.member("a"), talk.member("b"))
    a.send_join()
    b.beat_until("rebalance_in_progress")
    b.join()
    a.joined()
    a.sync(given={a: b"left", b: b"right"})
    a.beat_until("rebalance_in_progress")
    b.beat()
    a.join()


def a_leader_that_never_shares_the_work_is_out(talk):
    a, b = hurried(talk, talk.member("a"), talk.member("b"))
    a.send_join()
    b.beat_until("rebalance_in_progress")
    b.join()
    a.joined()
    b.send_sync()
    b.synced()
    b.join()
    a.beat()


def a_member_that_is_gone_while_it_waits_wedges_nobody(talk):
    a, b = settled(talk, talk.member("a"), talk.member("b"))
    c = talk.member("c", session_ms=SHORT_MS)
    c.enter()
    rejoin(a, b, but_first=c.raw.close)
    # Nobody shares the work: how soon the one that is gone is missed is left open.
    rejoin(a, b)
    share(a, (a, b))


def rejoin(a, b, but_first=lambda: None):
    """Have both come back when they are called in."""
    a.beat_until("rebalance_in_progress")
    but_first()
    b.beat_until("rebalance_in_progress")
    a.send_join()
    b.join()
    a.joined()


def a_group_is_told_of_in_every_phase(talk):
    a, b = talk.member("a"), talk.member("b")
    a.enter()
    a.joined()
    tell(talk)
    a.sync(given={a: b"all"})
    tell(talk)
    b.enter()
    a.beat_until("rebalance_in_progress")
    tell(talk)
    a.send_join()
    a.joined()
    b.joined()
    a.leave()
    b.join()
    b.leave()
    tell(talk)


def tell(talk):
    talk.describe(talk.group, talk.topic("-none"), include_authorized_operations=True)
    talk.describe(talk.group, talk.topic("-none"), version=5, include_authorized_operations=True)
    talk.list()
    for states in (["stable"], ["Empty", "STABLE"], ["PreparingRebalance"], ["none"]):
        talk.list(states_filter=states)
    for kinds in (["classic"], ["Consumer"], ["none"], ["consumer", "classic"]):
        talk.list(types_filter=kinds)
    talk.list(states_filter=["completingrebalance"], types_filter=["classic"])


def a_group_is_deleted_when_nobody_is_in_it(talk):
    (a,) = settled(talk, talk.member("a"))
    talk.delete(talk.group, talk.topic("-none"), talk.group, "")
    a.leave()
    talk.delete(talk.group)
    talk.delete(talk.group)
    talk.describe()
    talk.list()
    a.beat()
    a.join()


def a_group_of_offsets_alone_is_a_group(talk):
    talk.create()
    commit(talk, generation=-1)
    talk.list()
    talk.describe()
    fetch(talk)
    talk.delete(talk.group)
    fetch(talk)
    talk.list()


def members_of_a_generation_commit(talk):
    talk.create()
    a, b = settled(talk, talk.member("a"), talk.member("b"))
    commit(talk, generation=-1)
    commit(talk, a)
    commit(talk, a, generation=0)
    commit(talk, a, member_id="stranger")
    commit(talk, a, group_instance_id="one")
    a.send_join()
    b.beat_until("rebalance_in_progress")
    commit(talk, b)
    b.join()
    a.joined()
    commit(talk, b)
    fetch(talk)


def commit(talk, member=None, **other):
    generation = other.pop("generation", member.generation if member else -1)
    asked = {
        "group_id": talk.group,
        "generation_id_or_member_epoch": generation,
        "member_id": member.id if member else "",
        "topics": [
            {
                "name": talk.topic(),
                "partitions": [{"partition_index": 0, "committed_offset": generation + 5}],
            }
        ],
    }
    talk.ask("offset_commit", 9, asked | other)


def fetch(talk):
    talk.ask("offset_fetch", 9, {"groups": [{"group_id": talk.group, "topics": None}]})


CASES = (
    names_and_times_are_checked,
    a_group_grows_and_shrinks,
    the_leader_may_forget_members,
    a_member_comes_back_with_and_without_news,
    a_round_begins_while_the_last_is_not_over,
    protocols_are_voted_on,
    what_does_not_fit_is_refused,
    any_kind_of_work_is_shared,
    a_static_member_comes_back,
    a_static_member_comes_back_with_another_protocol,
    a_static_member_comes_back_in_a_round,
    a_static_member_comes_back_while_the_work_is_shared,
    several_leave_at_once,
    members_that_leave_while_they_wait_are_told,
    an_expected_member_leaves,
    silence_ends_a_session,
    who_does_not_come_back_in_time_is_out,
    who_does_not_fetch_its_part_in_time_is_out,
    a_leader_that_never_shares_the_work_is_out,
    a_member_that_is_gone_while_it_waits_wedges_nobody,
    a_group_is_told_of_in_every_phase,
    a_group_is_deleted_when_nobody_is_in_it,
    a_group_of_offsets_alone_is_a_group,
    members_of_a_generation_commit,
    a_group_is_full,
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_is_answered_as_kafka_does(case, broker, name, request):
    """GRP-01, GRP-05, GRP-07, GRP-09, GRP-10, GRP-11, GRP-16."""
    lines = play(case, broker.bootstrap, name, Talk)
    check("groups", case.__name__, lines, peer=is_peer(request))


@pytest.mark.parametrize("version", range(10))
def test_a_member_of_any_version_is_answered_as_kafka_does(version, broker, name, request):
    lines = play(one_member_by_version, broker.bootstrap, name, Talk, version=version)
    check("groups", f"one member, v{version}", lines, peer=is_peer(request))


@pytest.mark.parametrize("version", range(5, 10))
def test_a_static_member_of_any_version_is_answered_as_kafka_does(version, broker, name, request):
    """GRP-16."""
    lines = play(two_static_lives_by_version, broker.bootstrap, name, Talk, version=version)
    check("groups", f"two static lives, v{version}", lines, peer=is_peer(request))


@pytest.mark.parametrize("version", [3, 5, 9])
def test_a_name_too_long_for_an_id_holds_up_nobody(strom_of_groups, name, version):
    """The id that is made of it would fit into no record, and nobody's work could be shared."""

    def case(talk):
        a = talk.member("a")
        settled(talk, a)
        long = "b" * (2**15 - 1)
        b = talk.member(long, instance=long if version >= STATIC_FROM else None)
        assert b.join(version)["error_code"] == "unknown_server_error"
        assert a.beat()["error_code"] == "none"
        assert len(talk.describe()["groups"][0]["members"]) == 1

    play(case, strom_of_groups.bootstrap, name, Talk)


def test_api_versions_tells_what_is_served(broker):
    with Raw(broker.bootstrap) as raw:
        told = raw.ask("api_versions", 0)["api_keys"]
    ranges = {each["api_key"]: (each["min_version"], each["max_version"]) for each in told}
    assert {key: ranges[key] for key in SERVED} == SERVED
