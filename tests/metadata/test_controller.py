"""The controller as a machine: any history, replayed, gives the same cluster."""

from random import Random
from uuid import UUID

import pytest
from hypothesis import settings
from hypothesis import strategies as some
from hypothesis.stateful import initialize, invariant, rule

from strom.metadata.broker_decisions import Heartbeat
from strom.metadata.config_decisions import Alteration, Operation
from strom.metadata.controller import Controller
from strom.metadata.delta import advance
from strom.metadata.feature_decisions import FeatureUpdate, UpgradeType, bootstrap_records
from strom.metadata.image import Image
from strom.metadata.records import NO_LEADER, RegisterController, read_record, write_record
from strom.metadata.snapshot import snapshot_records
from strom.metadata.topic_decisions import Defaults, MorePartitions, NewTopic, TopicReference
from tests.effort import examples
from tests.metadata.cluster import CLUSTER_ID, Cluster, SomeRules, directory_of, registration_of
from tests.replicated.replay import AnyHistory

BROKERS = some.integers(1, 3)
NAMES = some.sampled_from(["a", "b", "a.b", "a_b", "", "x" * 250])


class AnyCluster(AnyHistory):
    """Brokers come and go, topics too."""

    def new_machine(self):
        return Controller(Image(), cluster_id=CLUSTER_ID, node_id=1, rules=SomeRules())

    def state_of(self, machine):
        return machine.image

    def to_bytes(self, record):
        return write_record(record)

    def from_bytes(self, data):
        return read_record(data)

    @initialize()
    def begin(self):
        self.decide(lambda: self.machine.bootstrap(bootstrap_records()))

    @rule(number=BROKERS, life=some.integers(1, 3), clean=some.booleans())
    def register(self, number, life, clean):
        known = self.machine.image.brokers.get(number)
        registration = registration_of(
            number,
            life=life,
            previous_epoch=known.epoch if known and clean else -1,
            directories=(directory_of(number), directory_of(number, 1)),
        )
        epoch = len(self.log)
        self.decide(
            lambda: self.machine.register_broker(
                registration, broker_epoch=epoch, has_session=False
            )
        )

    @rule(number=BROKERS, fence=some.booleans(), stop=some.booleans(), lost=some.booleans())
    def beat(self, number, fence, stop, lost):
        known = self.machine.image.brokers.get(number)
        beat = Heartbeat(
            number,
            known.epoch if known else 0,
            want_fence=fence,
            want_shut_down=stop,
            offline_directories=(directory_of(number, 1),) if lost else (),
        )
        self.decide(lambda: self.machine.heartbeat(beat))

    @rule(number=BROKERS)
    def unregister(self, number):
        self.decide(lambda: self.machine.unregister_broker(number))

    @rule(name=NAMES, count=some.integers(-1, 4), factor=some.integers(-1, 3), seed=some.integers())
    def create(self, name, count, factor, seed):
        self.decide(
            lambda: self.machine.create_topics(
                [NewTopic(name, count, factor, configs=(("retention.ms", "5"),))],
                defaults=Defaults(2, 1),
                rng=Random(seed),
                validate_only=False,
            )
        )

    @rule(name=NAMES)
    def delete(self, name):
        self.decide(lambda: self.machine.delete_topics([TopicReference(name)]))

    @rule(name=NAMES, count=some.integers(0, 6), seed=some.integers())
    def grow(self, name, count, seed):
        self.decide(
            lambda: self.machine.create_partitions(
                [MorePartitions(name, count)], rng=Random(seed), validate_only=False
            )
        )

    @rule(name=NAMES, operation=some.sampled_from(Operation), value=some.sampled_from(["1", "2,3"]))
    def alter(self, name, operation, value):
        change = Alteration("cleanup.policy", operation, value)
        self.decide(
            lambda: self.machine.incrementally_alter_configs(
                [((2, name), (change,))], validate_only=False
            )
        )

    @rule(number=BROKERS, index=some.integers(0, 1))
    def assign(self, number, index):
        image = self.machine.image
        epoch = image.brokers[number].epoch if number in image.brokers else 0
        places = [(topic.id, 0) for topic in image.topics_by_name.values()][:1]
        asked = [(directory_of(number, index), place) for place in places]
        self.decide(lambda: self.machine.assign_directories(number, epoch, asked))

    @rule(level=some.integers(-1, 3), kind=some.sampled_from(UpgradeType))
    def update(self, level, kind):
        asked = [FeatureUpdate("transaction.version", level, kind)]
        self.decide(lambda: self.machine.update_features(asked, validate_only=False))

    @rule(number=BROKERS)
    def allocate(self, number):
        image = self.machine.image
        epoch = image.brokers[number].epoch if number in image.brokers else 0
        self.decide(lambda: self.machine.allocate_producer_ids(number, epoch))

    @invariant()
    def a_snapshot_gives_the_state_back(self):
        image = self.machine.image
        assert advance(Image(), snapshot_records(image)).after == image

    @invariant()
    def a_leader_is_in_sync_and_in_sync_replicas_are_replicas(self):
        for topic in self.machine.image.topics_by_id.values():
            for partition in topic.partitions.values():
                assert partition.isr
                assert set(partition.isr) <= set(partition.replicas)
                assert partition.leader in (*partition.isr, NO_LEADER)
                assert len(partition.directories) == len(partition.replicas)

    @invariant()
    def both_ways_to_a_topic_lead_to_the_same(self):
        image = self.machine.image
        by_id = {topic.name: topic for topic in image.topics_by_id.values()}
        assert by_id == dict(image.topics_by_name)


TestAnyCluster = pytest.mark.slow(AnyCluster.TestCase)
TestAnyCluster.settings = settings(max_examples=examples(40), stateful_step_count=25, deadline=None)


def test_a_cluster_begins_once(cluster):
    assert cluster.controller.bootstrap(bootstrap_records()).records == ()


def test_the_cluster_says_from_the_start_how_many_must_be_in_sync():
    assert dict(Cluster().image.config((4, ""))) == {"min.insync.replicas": "1"}


def test_a_controller_registers_once_in_its_life(cluster):
    record = RegisterController(
        controller_id=1,
        incarnation_id=UUID(int=5),
        zk_migration_ready=False,
        end_points=(),
        features=(),
    )
    cluster.do(cluster.controller.register_controller(record))
    assert cluster.image.controllers[1] == record
    assert cluster.controller.register_controller(record).records == ()
