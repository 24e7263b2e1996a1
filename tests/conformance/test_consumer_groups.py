"""Consumer groups (KIP-848) over the wire: heartbeats, epochs, hands that partitions change.

Each case is played to Strom and to Apache Kafka (`answers/consumer_groups.json` has its answers).
Most groups use the range assignor: what the uniform one gives to whom is everybody's own affair.
Rows: GRP-01, GRP-03, GRP-05, GRP-11, GRP-12, GRP-16, TXN-07.
"""

import pytest

from tests import nodes
from tests.conformance.consumers import OFFSETS_PARTITIONS, ClassicMember, Consumers, told
from tests.conformance.grouping import settled
from tests.conformance.raw import Raw
from tests.conformance.transacting import COMMIT, Tx
from tests.conformance.transcript import check, is_peer, play

#: Groups are assigned to at once, are soon full, and may have sessions that one can wait for.
SETTINGS = {
    "group.consumer.assignment.interval.ms": 0,
    "group.consumer.max.size": 4,
    "group.consumer.min.session.timeout.ms": 500,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": OFFSETS_PARTITIONS,
}
SHORT_MS = 700
#: A member's id that comes behind all that a broker gives.
LAST = "~"
UPGRADE, SAFE_DOWNGRADE = 1, 2
SERVED = {68: (0, 1), 69: (0, 1)}


@pytest.fixture(scope="module")
def strom_of_consumers():
    process = nodes.StromProcess(nodes.new_directory("consumers"), **SETTINGS)
    yield process.start()
    process.remove()


@pytest.fixture(scope="module")
def kafka_of_consumers():
    if reason := nodes.java_missing():
        pytest.skip(reason)
    properties = [f"{name}={value}" for name, value in SETTINGS.items()]
    peer = nodes.KafkaProcess(nodes.new_directory("kafka-consumers"), *properties).start()
    yield peer
    peer.remove()


@pytest.fixture(params=["strom", "kafka"])
def broker(request):
    return request.getfixturevalue(f"{request.param}_of_consumers")


def is_assigned(answer):
    return bool(answer["assignment"] and answer["assignment"]["topic_partitions"])


def one_member_by_version(talk, version):
    talk.create("-t", 2)
    a = talk.consumer("a", "-t", version=version, member_id="" if version == 0 else "a")
    a.join()
    a.beat()
    a.beat(**a.full(owned={"-t": [0]}))
    a.beat(owned={"-t": [0, 1]})
    talk.describe_consumers(version=version, include_authorized_operations=True)
    a.leave()
    talk.describe_consumers(version=version)
    a.beat(epoch=1)


def requests_are_checked(talk):
    talk.create("-t")
    for version in (0, 1):
        a = talk.consumer("a", "-t", version=version)
        a.join(group_id="")
        a.join(member_id="")
        a.beat(epoch=1, member_id="")
        a.beat(epoch=-1, member_id="")
        a.join(instance_id="")
        a.join(rack_id="")
        a.join(rebalance_timeout=-1)
        a.join(owned=None)
        a.join(owned={"-t": [0]})
        a.join(subscribed_topic_names=None)
        a.beat(epoch=-2)
        a.beat(epoch=-3)
        a.join(server_assignor="best")
    talk.describe_consumers()


def who_is_not_known_is_told_so(talk):
    talk.create("-t")
    a, b = talk.consumer("a", "-t"), talk.consumer("b", "-t")
    a.beat(epoch=1)
    a.leave()
    a.join()
    b.beat(epoch=1)
    b.leave()
    b.beat(epoch=1, instance_id="x")
    b.beat(epoch=-2, instance_id="x")
    talk.describe_consumers("", talk.group, talk.topic("-none"))


def partitions_change_hands(talk):
    """GRP-05: they are given up before they are given on."""
    talk.create("-t", 4)
    a, b = talk.consumer("a", "-t"), talk.consumer("b", "-t")
    a.join()
    b.join()
    talk.describe_consumers()
    a.beat()
    b.beat()
    a.beat()
    talk.describe_consumers()
    a.beat(owned={"-t": [0, 1]})
    b.beat()
    b.beat(owned={"-t": [2, 3]})
    talk.describe_consumers()
    c = talk.consumer("c", "-t")
    c.join()
    b.beat()
    a.beat()
    b.beat(owned={"-t": []})
    c.beat()
    a.beat()
    b.leave()
    talk.describe_consumers()
    c.beat()
    a.beat()
    c.beat(owned={"-t": [3]})
    a.beat()


def members_without_a_partition_are_idle(talk):
    """GRP-03."""
    talk.create("-t")
    members = [talk.consumer(name, "-t") for name in "ab"]
    for each in members:
        each.join()
    for each in members:
        each.beat()
    talk.describe_consumers()


def epochs_are_fenced(talk):
    talk.create("-t", 2)
    a, b = talk.consumer("a", "-t"), talk.consumer("b", "-t")
    a.join()
    a.beat(epoch=2)
    b.join()
    a.beat()
    a.beat(owned={"-t": [0]})
    for epoch, owned in ((1, None), (1, {"-t": [0, 1]}), (1, {"-t": [0]}), (1, {}), (7, {})):
        a.note(a.ask(epoch, owned=owned))
    a.join()
    a.leave()
    a.beat(epoch=2)


def subscriptions_change(talk):
    talk.create("-t", 2)
    talk.create("-u", 2)
    a = talk.consumer("a", "-t")
    a.join()
    a.beat(subscribed_topic_names=a.names(["-t", "-u"]))
    a.beat(owned={"-t": [0, 1], "-u": [0, 1]}, subscribed_topic_names=a.names(["-u"]))
    talk.describe_consumers()
    a.beat(owned={"-u": [0, 1]})
    a.beat(subscribed_topic_names=[])
    a.beat(owned={})
    a.beat(subscribed_topic_names=a.names(["-none"]))
    talk.describe_consumers()


def topics_grow(talk):
    """GRP-11."""
    talk.create("-t", 1)
    a = talk.consumer("a", "-t", "-later")
    a.join()
    grown = {"topics": [{"name": talk.topic("-t"), "count": 2, "assignments": None}]}
    assert talk.raw.ask("create_partitions", 3, grown | {"timeout": 9000})["results"]
    a.beat_until(is_assigned)
    talk.create("-later", 1)
    a.beat_until(is_assigned)
    gone = {"topics": [{"name": talk.topic("-t")}], "timeout": 9000}
    talk.raw.ask("delete_topics", 6, gone)
    a.beat_until(is_assigned)
    talk.describe_consumers()


def both_assignors(talk):
    """GRP-12."""
    talk.create("-t", 4)
    talk.create("-u", 4)
    a, b = (talk.consumer(name, "-t", "-u") for name in "ab")
    a.join()
    b.join()
    a.beat()
    a.beat(owned={"-t": [0, 1], "-u": [0, 1]})
    b.beat()
    talk.describe_consumers()
    a.ask(a.epoch, server_assignor="uniform")
    b.ask(b.epoch, server_assignor="uniform")
    named = talk.raw.ask("consumer_group_describe", 1, {"group_ids": [talk.group]})
    talk.note("assignor", {"named": named["groups"][0]["assignor_name"]})


def static_members_come_back(talk):
    """GRP-16."""
    talk.create("-t", 2)
    a, b = talk.consumer("a", "-t", instance="one"), talk.consumer("b", "-t")
    a.join()
    b.join()
    a.beat()
    a.beat(owned={"-t": [0]})
    b.beat()
    again = talk.consumer("again", "-t", instance="one")
    again.join()
    again.beat(epoch=2)
    a.join()
    a.go_away()
    talk.describe_consumers()
    b.beat()
    again.join()
    talk.describe_consumers()
    a.beat(epoch=2)
    a.leave()
    a.go_away()
    b.beat()
    again.leave()
    b.beat()
    talk.describe_consumers()


def regular_expressions(talk):
    talk.create("-ta")
    talk.create("-tb")
    talk.create("-u")
    for wrong in ("[", "(", "a**", "a{2,1}", "\\", "(?=a)", "[b-a]"):
        talk.consumer("w", pattern=wrong).join(subscribed_topic_names=None)
    a = talk.consumer("a", pattern=f"{talk.topic()}-t.*")
    noted = len(talk.lines)
    a.join(subscribed_topic_names=None)
    del talk.lines[noted:]
    noted = talk.until(lambda: assigned_topics(a), "none")
    talk.note("assigned", noted)
    assert a.ask(a.epoch, owned={"-ta": [0], "-tb": [0]})["error_code"] == "none"
    described = talk.raw.ask("consumer_group_describe", 1, {"group_ids": [talk.group]})
    (member,) = described["groups"][0]["members"]
    talk.note("subscribed", {key: member[key] for key in member if key.startswith("subscribed")})


def assigned_topics(consumer):
    """What a consumer was given, told without its epoch: when a pattern is looked up may differ."""
    answer = consumer.ask(consumer.epoch, **consumer.full(subscribed_topic_names=None))
    given = (answer["assignment"] or {}).get("topic_partitions")
    return {"error_code": "none", "given": given} if given else {"error_code": "not yet"}


def a_group_is_full(talk):
    talk.create("-t")
    members = [talk.consumer(name, "-t") for name in "abcde"]
    for each in members:
        each.join()
    members[0].leave()
    members[4].join()


def silence_ends_a_session(talk):
    """The group's own session time-out counts."""
    talk.create("-t", 2)
    talk.alter_group(
        ("consumer.session.timeout.ms", str(SHORT_MS)), ("consumer.heartbeat.interval.ms", "100")
    )
    talk.settle()
    a, b = talk.consumer("a", "-t"), talk.consumer("b", "-t")
    first = a.ask(0, **a.full())
    talk.note("heartbeat interval", {"ms": first["heartbeat_interval"]})
    b.ask(0, **b.full())
    a.ask(a.epoch, owned={"-t": [0]})
    answer = talk.until(lambda: given_all(a), "none")
    talk.note("the one that stays", answer)
    b.beat()


def given_all(consumer):
    """Whether a member was given both partitions; it joins again if it was held up for too long."""
    answer = consumer.ask(consumer.epoch)
    if answer["error_code"] == "unknown_member_id":
        answer = consumer.ask(0, **consumer.full())
    given = (answer["assignment"] or {}).get("topic_partitions") or []
    if sum(len(each["partitions"]) for each in given) == 2:
        return {"error_code": "none", "given": given}
    return {"error_code": "not yet"}


def who_does_not_give_up_in_time_is_out(talk):
    talk.create("-t", 2)
    a, b = talk.consumer("a", "-t", rebalance_ms=SHORT_MS), talk.consumer("b", "-t")
    a.join()
    b.join()
    a.beat()
    talk.until(lambda: a.ask(a.epoch), "unknown_member_id")
    b.beat_until(is_assigned)


def settings_of_a_group_are_checked(talk):
    for name, value in (
        ("consumer.session.timeout.ms", "1"),
        ("consumer.session.timeout.ms", "99999999"),
        ("consumer.heartbeat.interval.ms", "1"),
        ("consumer.heartbeat.interval.ms", "60000"),
        ("consumer.assignment.interval.ms", "60000"),
        ("consumer.session.timeout.ms", "x"),
        ("consumer.none", "1"),
        ("consumer.session.timeout.ms", "50000"),
    ):
        talk.alter_group((name, value))
    talk.settle()
    asked = [
        {
            "resource_type": 32,
            "resource_name": talk.group,
            "configuration_keys": ["consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"],
        }
    ]
    talk.ask("describe_configs", 4, {"resources": asked, "include_synonyms": True})
    talk.alter_group(("consumer.session.timeout.ms", None))


def commits_carry_the_epoch(talk):
    talk.create("-t", 2)
    a, b = talk.consumer("a", "-t"), talk.consumer("b", "-t")
    a.join()
    a.commit("-t", 0, 5)
    a.commit("-t", 0, 5, epoch=7)
    a.commit("-t", 0, 5, epoch=0)
    a.commit("-t", 0, 5, member_id="z")
    a.commit("-t", 0, 5, epoch=-1, member_id="")
    a.commit("-t", 0, 5, version=8)
    b.join()
    a.beat()
    a.commit("-t", 1, 6)
    a.beat(owned={"-t": [0]})
    a.commit("-t", 0, 7, epoch=1)
    a.commit("-t", 1, 7, epoch=1)
    b.beat()
    b.commit("-t", 1, 8)
    b.commit("-t", 1, 8, epoch=1)
    a.committed("-t", 0, 1)
    a.committed("-t", 0, epoch=1)
    a.committed("-t", 0, member_id="z")
    a.leave()
    b.leave()
    b.commit("-t", 1, 9, epoch=-1, member_id="")


def a_static_one_and_another(talk):
    """Two members at epoch 3: the first has had partition 0 since epoch 2, and gave 1 away."""
    talk.create("-t", 2)
    a, b = talk.consumer("a", "-t", instance="one"), talk.consumer("b", "-t")
    a.join()
    b.join()
    a.beat()
    a.beat(owned={"-t": [0]})
    b.beat()
    return a, b


def transactions_carry_the_epoch(talk):
    """TXN-07; KIP-447."""
    a, b = a_static_one_and_another(talk)
    tx = Tx(talk)
    tx.begin()
    own = {"suffix": "-t", "group_id": talk.group, "member_id": a.id, "group_instance_id": "one"}
    for version in (3, 4, 5):
        if version == 3:
            tx.add_offsets(suffix="")
        # Of what it has had since epoch 2, in time, late and too late; of what it has given away.
        for partition, epoch in ((0, 3), (0, 2), (0, 1), (0, 4), (1, 3), (1, 2)):
            tx.commit_offset(version, version, partition, generation_id=epoch, **own)
    others = own | {"member_id": b.id, "group_instance_id": None}
    tx.commit_offset(7, 5, 1, generation_id=b.epoch, **others)
    tx.commit_offset(7, 5, 1, generation_id=2, **others)
    tx.commit_offset(8, 5, generation_id=a.epoch, **own | {"member_id": "z"})
    tx.commit_offset(8, 5, generation_id=a.epoch, **own | {"group_instance_id": "two"})
    tx.commit_offset(8, 5, generation_id=-1, **own)
    tx.commit_offset(8, 5, generation_id=-1, **own | {"member_id": ""})
    tx.commit_offset(9, 2, suffix="-t", group_id=talk.group)
    a.go_away()
    tx.commit_offset(8, 5, generation_id=a.epoch, **own)
    tx.commit_offset(8, 5, generation_id=-2, **own)
    again = talk.consumer("c", "-t", instance="one")
    again.join()
    tx.commit_offset(8, 5, generation_id=2, **own)
    tx.commit_offset(5, 5, generation_id=again.epoch, **own | {"member_id": again.id})
    tx.end(COMMIT)
    tx.described()
    b.committed("-t", 0, 1)


def transactions_carry_the_generation(talk):
    """TXN-07; KIP-447."""
    talk.create("-t", 2)
    a, b = talk.member("a", instance="one"), talk.member("b")
    settled(talk, a, b)
    tx = Tx(talk)
    tx.begin()
    own = {"suffix": "-t", "group_id": talk.group, "member_id": a.id, "group_instance_id": "one"}
    for version in (3, 4, 5):
        if version == 3:
            tx.add_offsets(suffix="")
        for generation in (a.generation, a.generation - 1, a.generation + 1, -1):
            tx.commit_offset(version, version, generation_id=generation, **own)
    tx.commit_offset(8, generation_id=a.generation, **own | {"member_id": "z"})
    tx.commit_offset(8, generation_id=a.generation, **own | {"group_instance_id": "two"})
    tx.commit_offset(8, generation_id=a.generation, **own | {"member_id": b.id})
    tx.commit_offset(9, 2, suffix="-t", group_id=talk.group)
    # While it rebalances, what was read before is still taken.
    c = talk.member("c")
    c.enter()
    talk.until(b.ask_beat, "rebalance_in_progress")
    tx.commit_offset(10, generation_id=a.generation, **own)
    # Who comes back under the name of a static member fences who had it.
    again = talk.member("d", instance="one")
    again.send_join()
    b.send_join()
    for each in (again, b, c):
        each.joined()
    tx.commit_offset(11, generation_id=again.generation, **own)
    tx.commit_offset(12, generation_id=again.generation, **own | {"member_id": again.id})
    tx.end(COMMIT)
    tx.described()
    talk.ask("offset_fetch", 9, {"groups": [{"group_id": talk.group, "topics": None}]})


def offsets_of_what_is_read_stay(talk):
    """OFS-07: in a group of either protocol; those of other topics can be deleted."""
    talk.create("-t")
    talk.create("-u")
    talk.create("-w")
    c = talk.consumer("c", "-t", "-u")
    c.join()
    for suffix in ("-t", "-w"):
        c.commit(suffix, 0, 5)
    talk.delete_offsets("-t", "-u", "-w")
    c.committed("-t", 0)
    c.committed("-w", 0)
    c.beat(subscribed_topic_names=[talk.topic("-u")])
    talk.delete_offsets("-t", "-u")
    c.leave()
    talk.delete_offsets("-u")
    a = classic(talk, "a", "-t")
    talk.group = talk.topic("-classic")
    talk.coordinated(talk.group)
    settled(talk, a)
    talk.delete_offsets("-t", "-u")


def tools_see_both_kinds(talk):
    talk.create("-t")
    a = talk.consumer("a", "-t")
    a.join()
    talk.list()
    talk.list(states_filter=["stable"], types_filter=["consumer"])
    talk.list(types_filter=["classic"])
    talk.describe()
    talk.delete(talk.group)
    a.commit("-t", 0, 3)
    a.leave()
    talk.list()
    talk.delete(talk.group)
    talk.describe_consumers()
    talk.list()


def classic(talk, name, *suffixes, instance=None):
    made = ClassicMember(talk, name, instance=instance)
    talk.members.append(made)
    return made.wants(*suffixes)


def a_classic_group_is_upgraded(talk):
    talk.create("-t", 3)
    a = classic(talk, "a", "-t")
    a.enter()
    a.joined()
    a.sync(given={a: told(talk, "-t", 0, 1, 2)})
    c = talk.consumer("c", "-t", member_id=LAST)
    c.join()
    talk.describe()
    a.beat()
    a.wants("-t", owned={"-t": [0, 1, 2]})
    a.join()
    a.sync()
    a.wants("-t", owned={"-t": [0, 1]})
    a.beat()
    a.join()
    a.sync()
    a.beat()
    c.beat()
    talk.list()
    c.leave()
    a.beat()
    talk.list()
    a.join()
    a.sync(given={a: told(talk, "-t", 0, 1, 2)})
    talk.describe()


def classic_members_in_a_consumer_group(talk):
    talk.create("-t", 2)
    c = talk.consumer("c", "-t", member_id=LAST)
    c.join()
    a = classic(talk, "a", "-t")
    a.join()
    a.join()
    a.beat()
    a.beat(generation_id=9)
    a.beat(member_id="z")
    a.sync(protocol_name="other")
    a.sync()
    a.sync(generation_id=9)
    c.beat()
    c.beat(owned={"-t": [1]})
    a.beat()
    a.join()
    a.sync()
    a.beat()
    a.join(protocol_type="connect")
    talk.describe_consumers()
    a.leave()
    a.beat()


def a_static_member_changes_its_protocol(talk):
    """GRP-16."""
    talk.create("-t", 2)
    c, d = talk.consumer("c", "-t", instance="one"), talk.consumer("d", "-t")
    c.join()
    d.join()
    c.beat()
    c.beat(owned={"-t": [0]})
    d.beat()
    a = classic(talk, "a", "-t", instance="one")
    a.join()
    a.sync()
    c.beat()
    back = talk.consumer("e", "-t", instance="one")
    back.join()
    a.beat()
    talk.describe_consumers()


def what_cannot_be_upgraded(talk):
    a = talk.member("a", kind="connect")
    a.enter()
    a.joined()
    talk.consumer("c", "-t").join()
    talk.group = talk.topic("-2")
    talk.coordinated(talk.group)
    b = talk.member("b")
    b.enter()
    b.joined()
    talk.consumer("c", "-t").join()


def the_feature_turns_the_protocol_off(talk):
    talk.create("-t")
    a = talk.consumer("a", "-t")
    a.join()
    talk.set_feature("group.version", 0, SAFE_DOWNGRADE)
    try:
        a.note(talk.until(lambda: a.ask(a.epoch), "unsupported_version"))
        talk.describe_consumers()
        talk.describe()
        talk.list()
    finally:
        talk.set_feature("group.version", 1, UPGRADE)
    a.beat_until(lambda _: True)
    talk.describe_consumers()


CASES = (
    requests_are_checked,
    who_is_not_known_is_told_so,
    partitions_change_hands,
    members_without_a_partition_are_idle,
    epochs_are_fenced,
    subscriptions_change,
    topics_grow,
    both_assignors,
    static_members_come_back,
    regular_expressions,
    a_group_is_full,
    silence_ends_a_session,
    who_does_not_give_up_in_time_is_out,
    settings_of_a_group_are_checked,
    commits_carry_the_epoch,
    transactions_carry_the_epoch,
    transactions_carry_the_generation,
    offsets_of_what_is_read_stay,
    tools_see_both_kinds,
    a_classic_group_is_upgraded,
    classic_members_in_a_consumer_group,
    a_static_member_changes_its_protocol,
    what_cannot_be_upgraded,
    the_feature_turns_the_protocol_off,
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_is_answered_as_kafka_does(case, broker, name, request):
    """GRP-01, GRP-03, GRP-05, GRP-11, GRP-12, GRP-16."""
    lines = play(case, broker.bootstrap, name, Consumers)
    check("consumer_groups", case.__name__, lines, peer=is_peer(request))


@pytest.mark.parametrize("version", (0, 1))
def test_a_member_of_any_version_is_answered_as_kafka_does(version, broker, name, request):
    lines = play(one_member_by_version, broker.bootstrap, name, Consumers, version=version)
    check("consumer_groups", f"one member, v{version}", lines, peer=is_peer(request))


def test_api_versions_tells_what_is_served(broker):
    with Raw(broker.bootstrap) as raw:
        told = raw.ask("api_versions", 0)["api_keys"]
    ranges = {each["api_key"]: (each["min_version"], each["max_version"]) for each in told}
    assert {key: ranges[key] for key in SERVED} == SERVED
