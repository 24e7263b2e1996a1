"""A cluster to ask: the controller, the records it wrote, and rules for its settings."""

from random import Random
from uuid import UUID

from strom.metadata.broker_decisions import Heartbeat, Registration
from strom.metadata.controller import Controller
from strom.metadata.feature_decisions import bootstrap_records, supported_features
from strom.metadata.image import Image
from strom.metadata.records import Endpoint, read_record, write_record
from strom.metadata.topic_decisions import Defaults, NewTopic
from strom.wire.errors import ErrorCode, KafkaError

CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"
DEFAULTS = Defaults(1, 1)


class SomeRules:
    """Knows two settings; what is not among them is refused as Kafka refuses it."""

    LISTS = ("cleanup.policy",)
    KNOWN = ("retention.ms", "cleanup.policy", "min.insync.replicas")

    def check(self, resource, config):
        for name in config:
            if name not in self.KNOWN:
                raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {name}")

    def is_list(self, resource_type, name):
        return name in self.LISTS

    def default(self, resource_type, name):
        return {"cleanup.policy": "delete"}.get(name)


class Cluster:
    """A controller whose decisions are carried out, through the bytes of the log."""

    def __init__(self, brokers=1, racks=()):
        self.controller = Controller(Image(), cluster_id=CLUSTER_ID, node_id=1, rules=SomeRules())
        self.log = []
        self.do(self.controller.bootstrap(bootstrap_records()))
        for number in range(1, brokers + 1):
            rack = racks[(number - 1) % len(racks)] if racks else None
            self.do(self.controller.heartbeat(Heartbeat(number, self.register(number, rack=rack))))

    @property
    def image(self):
        return self.controller.image

    def do(self, decision):
        for record in decision.records:
            frame = write_record(record)
            self.log.append(frame)
            self.controller.apply(read_record(frame))
        return decision.reply

    def register(self, number, *, life=1, previous_epoch=-1, has_session=False, **changed):
        registration = registration_of(number, life=life, previous_epoch=previous_epoch, **changed)
        decision = self.controller.register_broker(
            registration, broker_epoch=len(self.log), has_session=has_session
        )
        return self.do(decision)

    def beat(self, number, **wishes):
        return self.do(
            self.controller.heartbeat(Heartbeat(number, self.image.brokers[number].epoch, **wishes))
        )

    def decide_topics(self, *topics, validate_only=False, seed=0):
        return self.controller.create_topics(
            topics, defaults=DEFAULTS, rng=Random(seed), validate_only=validate_only
        )

    def create(self, name="t", count=1, factor=1, **more):
        asked = NewTopic(name, count, factor, **more)
        reply = self.do(self.decide_topics(asked, seed=len(self.log)))
        return reply[name]

    def partition(self, name="t", index=0):
        return self.image.partition(name, index)


def directory_of(number, index=0):
    return UUID(int=number * 1000 + index)


def registration_of(number, *, life=1, previous_epoch=-1, **changed):
    facts = {
        "broker_id": number,
        "cluster_id": CLUSTER_ID,
        "incarnation_id": UUID(int=number * 100 + life),
        "endpoints": (
            Endpoint(name="PLAINTEXT", host="localhost", port=9092, security_protocol=0),
        ),
        "features": supported_features(),
        "directories": (directory_of(number),),
        "previous_epoch": previous_epoch,
    }
    return Registration(**(facts | changed))
