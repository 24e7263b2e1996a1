"""Brokers that register, serve, fall and leave; who leads then, and in which directory."""

from uuid import UUID

import pytest

from strom.metadata.broker_decisions import Heartbeat
from strom.metadata.feature_decisions import supported_features
from strom.metadata.outcome import Refusal
from strom.metadata.records import NO_LEADER, PartitionChange, SupportedFeature
from strom.replicated.machine import Decision
from strom.wire.errors import ErrorCode, KafkaError
from tests.metadata.cluster import CLUSTER_ID, Cluster, directory_of


def spread(brokers=3):
    """A cluster with one partition that all have and the first one leads."""
    cluster = Cluster(brokers)
    replicas = tuple(range(1, brokers + 1))
    cluster.create("t", -1, -1, assignments=((0, replicas),))
    return cluster


def test_a_broker_is_fenced_until_its_first_heartbeat():
    cluster = Cluster(brokers=0)
    epoch = cluster.register(1)
    assert cluster.image.brokers[1].fenced
    assert not cluster.beat(1).is_fenced
    assert cluster.image.brokers[1].is_active
    assert cluster.image.brokers[1].epoch == epoch


def test_a_heartbeat_with_no_news_writes_nothing(cluster):
    beat = Heartbeat(1, cluster.image.brokers[1].epoch)
    assert cluster.controller.heartbeat(beat).records == ()


def test_registering_again_in_the_same_life_keeps_the_epoch(cluster):
    before = cluster.image.brokers[1]
    assert cluster.register(1, rack="r") == before.epoch
    assert cluster.image.brokers[1] == before._replace(rack="r")


def test_a_new_life_gets_a_higher_epoch_and_is_fenced(cluster):
    before = cluster.image.brokers[1]
    assert cluster.register(1, life=2) > before.epoch
    assert cluster.image.brokers[1].fenced


REFUSED = [
    ({"cluster_id": "other"}, "INCONSISTENT_CLUSTER_ID",
     f"Expected cluster ID {CLUSTER_ID}, but got cluster ID other"),
    ({"life": 2, "has_session": True}, "DUPLICATE_BROKER_REGISTRATION",
     "Another broker is registered with that broker id. If the broker was recently restarted "
     "this should self-resolve once the heartbeat manager expires the broker's session."),
    ({"directories": ()}, "INVALID_REQUEST", "No directories specified in request"),
    ({"directories": (UUID(int=2),)}, "INVALID_REQUEST", "Reserved directory ID in request"),
    ({"directories": (directory_of(1),) * 2}, "INVALID_REQUEST",
     "Duplicate directory ID in request"),
    ({"directories": (directory_of(2),)}, "INVALID_REQUEST",
     f"Broker 2 is already registered with directory {directory_of(2)}"),
    ({"features": ()}, "INVALID_REGISTRATION",
     "Request features do not contain 'metadata.version'"),
    ({"features": (SupportedFeature(name="metadata.version", min_supported_version=7,
                                    max_supported_version=29), *supported_features()[1:])},
     "UNSUPPORTED_VERSION",
     "Unable to register because the broker does not support finalized version 30 of "
     "metadata.version. The broker wants a version between 7 and 29, inclusive."),
]  # fmt: skip


@pytest.mark.parametrize(("what", "code", "message"), REFUSED)
def test_a_registration_that_cannot_be_is_refused_in_kafkas_words(what, code, message):
    cluster = Cluster(brokers=2)
    with pytest.raises(KafkaError) as refused:
        cluster.register(1, **what)
    assert (refused.value.code.name, refused.value.message) == (code, message)


def test_a_stranger_and_a_broker_of_an_earlier_epoch_are_refused(cluster):
    with pytest.raises(KafkaError) as refused:
        cluster.controller.heartbeat(Heartbeat(9, 0))
    assert refused.value.code is ErrorCode.BROKER_ID_NOT_REGISTERED
    epoch = cluster.image.brokers[1].epoch
    with pytest.raises(KafkaError) as refused:
        cluster.controller.allocate_producer_ids(1, epoch - 1)
    assert (
        refused.value.message == f"Expected broker epoch {epoch}, but got broker epoch {epoch - 1}"
    )


# Who leads.


def test_a_fenced_leader_is_followed_by_the_next_in_sync_replica():
    cluster = spread()
    cluster.do(cluster.controller.fence_broker(1))
    assert (cluster.partition().leader, cluster.partition().isr) == (2, (2, 3))
    assert cluster.partition().leader_epoch == 1
    assert cluster.controller.fence_broker(1).records == ()


def test_the_last_in_sync_replica_stays_in_sync_and_leads_when_it_returns():
    cluster = spread(2)
    cluster.beat(1, want_fence=True)
    cluster.beat(2, want_fence=True)
    assert (cluster.partition().leader, cluster.partition().isr) == (NO_LEADER, (2,))
    cluster.beat(1)
    assert cluster.partition().leader == NO_LEADER
    cluster.beat(2)
    assert cluster.partition().leader == 2


def test_a_broker_back_from_a_clean_stop_leads_on_under_its_epoch():
    cluster = spread(1)
    before = cluster.partition()
    cluster.register(1, life=2, previous_epoch=cluster.image.brokers[1].epoch)
    cluster.beat(1)
    assert cluster.partition() == before


def test_a_broker_back_from_a_fall_leads_under_a_new_epoch():
    cluster = spread(1)
    cluster.register(1, life=2)
    cluster.beat(1)
    assert (cluster.partition().leader, cluster.partition().leader_epoch) == (1, 1)


def test_a_fallen_leader_with_followers_loses_the_lead_to_them():
    cluster = spread()
    cluster.register(1, life=2)
    assert (cluster.partition().leader, cluster.partition().isr) == (2, (2, 3))


def test_a_broker_that_wants_to_stop_gives_its_leads_away_first():
    cluster = spread()
    cluster.create("only.here", -1, -1, assignments=((0, (1,)),))
    pulse = cluster.beat(1, want_shut_down=True)
    assert pulse.should_shut_down
    assert cluster.image.brokers[1].in_controlled_shutdown
    assert cluster.partition().leader == 2
    # Nobody else can lead this one: it stays until the broker is gone.
    assert cluster.partition("only.here").leader == 1
    assert cluster.beat(1, want_shut_down=True).should_shut_down


def test_an_unregistered_broker_is_gone_and_leads_nothing():
    cluster = spread()
    cluster.do(cluster.controller.unregister_broker(1))
    assert 1 not in cluster.image.brokers
    assert cluster.partition().leader == 2
    with pytest.raises(KafkaError) as refused:
        cluster.controller.unregister_broker(1)
    assert refused.value.message == "Broker ID 1 is not currently registered"


def test_a_partition_as_kafka_leaves_it_at_a_clean_stop_is_led_again():
    cluster = spread(2)
    cluster.beat(1, want_fence=True)
    cluster.beat(2, want_fence=True)
    topic_id = cluster.image.topics_by_name["t"].id
    as_kafka_leaves_it = PartitionChange(
        partition_id=0,
        topic_id=topic_id,
        isr=(),
        leader=NO_LEADER,
        eligible_leader_replicas=(2, 1),
        last_known_elr=(2,),
    )
    cluster.do(Decision((as_kafka_leaves_it,), None))
    cluster.beat(1)
    led = cluster.partition()
    assert (led.leader, led.isr, led.eligible_leaders) == (1, (1,), (2,))
    assert led.last_known_leaders == ()


def test_a_partition_that_nobody_is_remembered_for_stays_without_a_leader():
    cluster = spread(1)
    topic_id = cluster.image.topics_by_name["t"].id
    lost = PartitionChange(partition_id=0, topic_id=topic_id, isr=(), leader=NO_LEADER)
    cluster.do(Decision((lost,), None))
    cluster.beat(1, want_fence=True)
    cluster.beat(1)
    assert cluster.partition().leader == NO_LEADER


# Directories.


def with_two_directories():
    cluster = Cluster(brokers=0)
    for number in (1, 2):
        cluster.register(number, directories=(directory_of(number), directory_of(number, 1)))
        cluster.beat(number)
    cluster.create("t", -1, -1, assignments=((0, (1, 2)),))
    return cluster


def assign(cluster, number, directory, topic_id=None, index=0):
    place = (topic_id or cluster.image.topics_by_name["t"].id, index)
    epoch = cluster.image.brokers[number].epoch
    decision = cluster.controller.assign_directories(number, epoch, [(directory, place)])
    return cluster.do(decision)[directory, place]


def test_a_broker_tells_in_which_directory_it_has_a_partition():
    cluster = with_two_directories()
    assert assign(cluster, 1, directory_of(1, 1)) is None
    assert cluster.partition().directory_of(1) == directory_of(1, 1)
    epoch = cluster.partition().partition_epoch
    assert assign(cluster, 1, directory_of(1, 1)) is None
    assert cluster.partition().partition_epoch == epoch


def test_a_lost_directory_takes_the_lead_of_its_own_partitions_only():
    cluster = with_two_directories()
    cluster.create("other", -1, -1, assignments=((0, (1, 2)),))
    assign(cluster, 1, directory_of(1))
    assign(cluster, 1, directory_of(1, 1), cluster.image.topics_by_name["other"].id)
    cluster.beat(1, offline_directories=(directory_of(1),))
    assert cluster.image.brokers[1].directories == (directory_of(1, 1),)
    assert (cluster.partition("t").leader, cluster.partition("t").isr) == (2, (2,))
    assert cluster.image.offline_replicas(cluster.partition("t"), {1, 2}) == (1,)
    assert cluster.partition("other").leader == 1
    assert cluster.image.offline_replicas(cluster.partition("other"), {1, 2}) == ()


def test_a_broker_that_comes_back_without_a_directory_leads_nothing_of_it():
    """Also after a clean stop: then everything else is as it was."""
    cluster = Cluster(brokers=0)
    cluster.register(1, directories=(directory_of(1), directory_of(1, 1)))
    cluster.beat(1)
    for number, name in enumerate(("t", "other")):
        cluster.create(name, -1, -1, assignments=((0, (1,)),))
        topic_id = cluster.image.topics_by_name[name].id
        assign(cluster, 1, directory_of(1, number), topic_id)
    epoch = cluster.image.brokers[1].epoch
    cluster.register(1, life=2, directories=(directory_of(1, 1),), previous_epoch=epoch)
    cluster.beat(1)
    assert cluster.partition("t").leader == NO_LEADER
    assert cluster.partition("t").isr == (1,)
    assert cluster.partition("other").leader == 1
    assert cluster.partition("other").leader_epoch == 0
    cluster.register(1, life=3, directories=(directory_of(1), directory_of(1, 1)))
    cluster.beat(1)
    assert cluster.partition("t").leader == 1


def test_a_partition_in_a_directory_that_is_gone_is_led_by_another():
    cluster = with_two_directories()
    cluster.beat(1, offline_directories=(directory_of(1),))
    assign(cluster, 1, directory_of(1))
    assert cluster.partition().leader == 2


def test_a_directory_of_no_partition_of_ours_is_refused():
    cluster = with_two_directories()
    cluster.register(3)
    directory = directory_of(3)
    assert assign(cluster, 3, directory) == Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert assign(cluster, 3, directory, index=9) == Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert assign(cluster, 3, directory, UUID(int=5)) == Refusal(ErrorCode.UNKNOWN_TOPIC_ID)


def test_a_cordoned_directory_gets_no_new_partitions():
    cluster = Cluster(brokers=2)
    cluster.beat(1, cordoned_directories=(directory_of(1),))
    assert {cluster.create(f"t{n}", 1, 1).name for n in range(8)}
    assert {cluster.partition(f"t{n}").leader for n in range(8)} == {2}


# Producer ids.


def test_blocks_of_producer_ids_never_overlap():
    cluster = Cluster(brokers=2)
    epochs = {number: cluster.image.brokers[number].epoch for number in (1, 2)}
    blocks = [
        cluster.do(cluster.controller.allocate_producer_ids(each, epochs[each]))
        for each in (1, 2, 1)
    ]
    assert blocks == [range(1000), range(1000, 2000), range(2000, 3000)]
