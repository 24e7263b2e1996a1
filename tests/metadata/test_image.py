"""The image: the sum of all records, and what lies between two of them."""

from uuid import UUID

from strom.metadata import kept
from strom.metadata.delta import advance
from strom.metadata.image import Image, applied
from strom.metadata.records import (
    AbortTransaction,
    BeginTransaction,
    ClearElr,
    Config,
    EndTransaction,
    FeatureLevel,
    PartitionChange,
    PartitionCreated,
    ProducerIds,
    RemoveTopic,
    TopicCreated,
    Unknown,
)
from strom.metadata.snapshot import snapshot_records
from tests.metadata.cluster import Cluster

TOPIC = UUID(int=77)


def image_of(*batch):
    return advance(Image(), batch).after


def new_topic(name="t", topic_id=TOPIC, partitions=1):
    return [
        TopicCreated(name=name, topic_id=topic_id),
        *(
            PartitionCreated(
                partition_id=index,
                topic_id=topic_id,
                replicas=(1, 2),
                isr=(1, 2),
                leader=1,
                leader_epoch=0,
                partition_epoch=0,
                directories=(UUID(int=11), UUID(int=12)),
            )
            for index in range(partitions)
        ),
    ]


def change(**what):
    return PartitionChange(partition_id=0, topic_id=TOPIC, **what)


def test_a_topic_is_found_by_name_and_by_id():
    image = image_of(*new_topic(partitions=3))
    assert image.topics_by_name["t"] is image.topics_by_id[TOPIC]
    assert sorted(image.topics_by_name["t"].partitions) == [0, 1, 2]


def test_partitions_that_are_alike_are_one_value_in_every_image():
    controllers, published = image_of(*new_topic(partitions=3)), image_of(*new_topic(partitions=3))
    first = controllers.topics_by_name["t"].partitions[0]
    for image in controllers, published:
        assert all(each is first for each in image.topics_by_name["t"].partitions.values())


def test_naming_a_leader_raises_the_leader_epoch_also_for_the_same_one():
    image = image_of(*new_topic(), change(leader=2), change(leader=2), change(isr=(2,)))
    partition = image.partition("t", 0)
    assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (2, 2, 3)
    assert partition.isr == (2,)


def test_directories_follow_their_replicas():
    image = image_of(*new_topic(), change(replicas=(2, 3)))
    assert image.partition("t", 0).directories == (UUID(int=12), UUID(int=1))
    assert image.partition("t", 0).directory_of(9) is None


def test_a_deleted_topic_takes_its_configs_along():
    config = Config(resource_type=2, resource_name="t", name="retention.ms", value="5")
    image = image_of(*new_topic(), config, RemoveTopic(topic_id=TOPIC))
    assert image == Image()


def test_taking_back_the_last_setting_leaves_nothing():
    def retention(value):
        return Config(resource_type=2, resource_name="t", name="retention.ms", value=value)

    assert dict(image_of(retention("5")).config((2, "t"))) == {"retention.ms": "5"}
    assert image_of(retention("5"), retention(None), retention(None)) == Image()


def test_a_feature_at_level_0_is_none():
    level = FeatureLevel(name="group.version", feature_level=1)
    gone = FeatureLevel(name="group.version", feature_level=0)
    assert dict(image_of(level).features) == {"group.version": 1}
    assert image_of(level, gone, gone) == Image()


def test_an_aborted_transaction_never_was():
    begun = image_of(*new_topic(), BeginTransaction(), ProducerIds(broker_id=1, next_producer_id=9))
    assert begun.next_producer_id == 9
    assert applied(begun, AbortTransaction()) == image_of(*new_topic())
    assert applied(begun, EndTransaction()).next_producer_id == 9
    assert applied(begun, EndTransaction()).before_transaction is None


def test_clearing_eligible_leaders_touches_only_partitions_that_have_some():
    image = image_of(*new_topic(partitions=2), change(eligible_leader_replicas=(1,)))
    delta = advance(image, [ClearElr(topic_name="")])
    (changed,) = delta.changes()
    assert changed.index == 0
    assert changed.after.eligible_leaders == ()
    assert advance(image, [ClearElr(topic_name="nope")]).after == image


def test_records_that_strom_does_not_act_on_are_kept_until_removed():
    secret = kept.UserScramCredential(
        name="u", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096
    )
    quota = kept.ClientQuota(
        entity=(kept.QuotaEntity(entity_type="user", entity_name=None),),
        key="k",
        value=1.0,
        remove=False,
    )
    image = image_of(secret, quota, Unknown(99, b"\x01\x63\x00x"), Unknown(99, b"\x01\x63\x00y"))
    assert len(image.others) == 2
    again = image_of(*snapshot_records(image))
    assert again == image
    removals = [
        kept.RemoveUserScramCredential(name="u", mechanism=1),
        kept.ClientQuota(entity=quota.entity, key="k", value=0.0, remove=True),
        kept.RemoveDelegationToken(token_id="never"),
    ]
    delta = advance(image, removals)
    assert not delta.after.others
    assert len(delta.others) == 3


def test_a_snapshot_leads_to_the_same_image():
    cluster = Cluster(brokers=3)
    cluster.create("a", 3, 2, configs=(("retention.ms", "5"),))
    cluster.create("b", 1, 3)
    cluster.beat(2, want_fence=True)
    cluster.do(cluster.controller.allocate_producer_ids(1, cluster.image.brokers[1].epoch))
    assert image_of(*snapshot_records(cluster.image)) == cluster.image


def test_a_delta_tells_what_is_new_changed_and_gone():
    other = UUID(int=78)
    before = image_of(*new_topic("kept", TOPIC), *new_topic("gone", other, partitions=2))
    new = UUID(int=79)
    delta = advance(
        before,
        [change(leader=2), RemoveTopic(topic_id=other), *new_topic("new", new)],
        end_offset=9,
        leader_epoch=3,
    )
    assert [topic.name for topic in delta.created_topics()] == ["new"]
    assert [topic.name for topic in delta.deleted_topics()] == ["gone"]
    told = [
        (each.topic.name, each.index, each.before is None, each.after is None)
        for each in delta.changes()
    ]
    assert told == [
        ("gone", 0, False, True),
        ("gone", 1, False, True),
        ("kept", 0, False, False),
        ("new", 0, True, False),
    ]
    assert (2, "gone") in delta.configs
    assert (delta.after.end_offset, delta.after.leader_epoch) == (9, 3)
    assert delta.before is before


def test_what_came_and_went_within_a_batch_is_no_change():
    delta = advance(Image(), [*new_topic(), RemoveTopic(topic_id=TOPIC)])
    assert list(delta.changes()) == []
    assert list(delta.created_topics()) == list(delta.deleted_topics()) == []


def test_a_topic_made_anew_under_its_name_is_another_topic():
    again = UUID(int=80)
    delta = advance(image_of(*new_topic()), [RemoveTopic(topic_id=TOPIC), *new_topic("t", again)])
    assert [each.id for each in delta.deleted_topics()] == [TOPIC]
    assert [each.id for each in delta.created_topics()] == [again]


def test_an_image_is_not_touched_by_its_successor():
    before = image_of(*new_topic())
    after = applied(before, RemoveTopic(topic_id=TOPIC))
    assert "t" in before.topics_by_name
    assert "t" not in after.topics_by_name


def test_brokers_and_features_that_a_batch_touched_are_told():
    cluster = Cluster()
    delta = advance(
        cluster.image,
        [
            *cluster.controller.fence_broker(1).records,
            FeatureLevel(name="group.version", feature_level=0),
        ],
    )
    assert delta.brokers == {1}
    assert delta.features == {"group.version"}
    assert delta.after.brokers[1].fenced
