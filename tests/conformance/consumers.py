"""Members of consumer groups (KIP-848) in a conversation; topics are told by their names."""

import contextlib
import itertools
from uuid import UUID

from strom.broker.coordination import java_hash
from strom.groups.consumer.embedded import (
    Assignment,
    Subscription,
    TopicPartition,
    read_assignment,
    read_subscription,
)
from strom.wire.messages import write_message
from strom.wire.primitives import INT16, MalformedFrame
from tests.conformance.grouping import Member, Talk
from tests.conformance.raw import Raw, plain

LONG_MS = 60_000
NEWEST = 1
OFFSETS_PARTITIONS = 5
#: What consumers of the classic protocol tell each other, by the fields that have it.
EMBEDDED = {
    "assignment": read_assignment,
    "member_assignment": read_assignment,
    "metadata": read_subscription,
    "member_metadata": read_subscription,
}


class Consumers(Talk):
    """A conversation about one consumer group."""

    def __init__(self, bootstrap, name):
        super().__init__(bootstrap, name)
        #: The topics of the conversation by their ids.
        self.topics = {}
        self.ids = {}

    def create(self, suffix="", partitions=1, **config):
        topic_id = super().create(suffix, partitions, **config)
        self.topics[topic_id] = suffix
        self.ids[suffix] = topic_id
        self.wait_known(suffix)
        return topic_id

    def wait_known(self, suffix):
        """Wait until the group's coordinator knows of a topic: a group beside it gets it."""
        asked = {
            "group_id": self.beside(),
            "member_id": "probe",
            "rebalance_timeout": LONG_MS,
            "subscribed_topic_names": [self.topic(suffix)],
            "topic_partitions": [],
        }

        def joined():
            answer = self.raw.ask("consumer_group_heartbeat", 1, asked | {"member_epoch": 0})
            self.raw.ask("consumer_group_heartbeat", 1, asked | {"member_epoch": -1})
            given = (answer["assignment"] or {}).get("topic_partitions")
            return answer if given else {"error_code": "not yet"}

        self.until(joined, "none")

    def beside(self):
        """The name of another group that the same partition of offsets coordinates."""
        place = java_hash(self.group) % OFFSETS_PARTITIONS
        names = (f"probe-{self.group}-{number}" for number in itertools.count())
        return next(each for each in names if java_hash(each) % OFFSETS_PARTITIONS == place)

    def consumer(self, name, *topics, **other):
        made = Consumer(self, name, topics, **other)
        self.members.append(made)
        return made

    def steady(self, value, key=""):
        if isinstance(value, UUID):
            return f"<id of {self.topics.get(value, 'another')}>"
        if isinstance(value, bytes) and key in EMBEDDED:
            # Some members say something else, or nothing.
            with contextlib.suppress(MalformedFrame):
                return self.steady(plain(EMBEDDED[key](value)))
        return super().steady(value, key)

    def describe_consumers(self, *groups, version=NEWEST, **other):
        asked = {"group_ids": list(groups) or [self.group], **other}
        return self.ask("consumer_group_describe", version, asked)

    def delete_offsets(self, *suffixes):
        """Delete the group's offsets of the first partitions of topics."""
        first = [{"partition_index": 0}]
        topics = [{"name": self.topic(each), "partitions": first} for each in suffixes]
        return self.ask("offset_delete", 0, {"group_id": self.group, "topics": topics})

    def set_feature(self, name, level, how):
        """Change a feature of the cluster; brokers see it a little later."""
        update = {"feature": name, "max_version_level": level, "upgrade_type": how}
        asked = {"timeout": LONG_MS, "feature_updates": [update]}
        return self.ask("update_features", 2, asked)

    def alter_group(self, *settings):
        """Change the group's own settings: (name, value), None to take it back."""
        asked = [
            {"name": name, "config_operation": 0 if value is not None else 1, "value": value}
            for name, value in settings
        ]
        resource = {"resource_type": 32, "resource_name": self.group, "configs": asked}
        return self.ask("incremental_alter_configs", 1, {"resources": [resource]})


class Consumer:
    """One member that speaks the consumer protocol."""

    def __init__(self, talk, name, topics, *, pattern=None, instance=None, **other):
        self.talk = talk
        self.name = name
        self.id = other.get("member_id", name)
        self.topics = topics
        self.pattern = pattern
        self.instance = instance
        self.assignor = other.get("assignor", "range")
        self.version = other.get("version", NEWEST)
        self.rebalance_ms = other.get("rebalance_ms", LONG_MS)
        self.epoch = 0
        self.raw = Raw(talk.bootstrap, client_id=name)

    def names(self, suffixes):
        return [self.talk.topic(each) for each in suffixes]

    def held(self, owned):
        if owned is None:
            return None
        return [
            {"topic_id": self.talk.ids[suffix], "partitions": list(partitions)}
            for suffix, partitions in owned.items()
        ]

    def ask(self, epoch, *, owned=None, **other):
        """Send a heartbeat; nothing is noted."""
        asked = {
            "group_id": self.talk.group,
            "member_id": self.id,
            "member_epoch": epoch,
            "instance_id": self.instance,
            "topic_partitions": self.held(owned),
        }
        answer = self.raw.ask("consumer_group_heartbeat", self.version, asked | other)
        if answer["error_code"] == "none":
            if answer["member_id"] != self.id:
                self.id = answer["member_id"]
                self.talk.known[self.id] = self.name
            self.epoch = answer["member_epoch"]
        return answer

    def full(self, **other):
        """All that a member has to say."""
        asked = {
            "rebalance_timeout": self.rebalance_ms,
            "subscribed_topic_names": self.names(self.topics),
            "subscribed_topic_regex": self.pattern,
            "server_assignor": self.assignor,
            "owned": {},
        }
        return asked | other

    def note(self, answer):
        return self.talk.note(f"{self.name}: consumer_group_heartbeat v{self.version}", answer)

    def join(self, **other):
        return self.note(self.ask(0, **self.full(**other)))

    def beat(self, epoch=None, **other):
        return self.note(self.ask(self.epoch if epoch is None else epoch, **other))

    def beat_until(self, is_it, **other):
        """Send heartbeats until the answer is as wanted; only that one is noted."""

        def beat():
            answer = self.ask(self.epoch, **other)
            return answer if is_it(answer) else {"error_code": "not yet"}

        return self.note(self.talk.until(beat, "none"))

    def leave(self):
        return self.note(self.ask(-1))

    def go_away(self):
        return self.note(self.ask(-2))

    def commit(self, suffix, partition, offset, *, epoch=None, version=9, member_id=None):
        """Commit an offset."""
        asked = {
            "group_id": self.talk.group,
            "generation_id_or_member_epoch": self.epoch if epoch is None else epoch,
            "member_id": self.id if member_id is None else member_id,
            "group_instance_id": self.instance,
            "topics": [
                {
                    "name": self.talk.topic(suffix),
                    "partitions": [{"partition_index": partition, "committed_offset": offset}],
                }
            ],
        }
        answer = self.raw.ask("offset_commit", version, asked)
        return self.talk.note(f"{self.name}: offset_commit v{version}", answer)

    def committed(self, suffix, *partitions, epoch=None, member_id=None):
        """Ask for committed offsets as a member."""
        asked = {
            "groups": [
                {
                    "group_id": self.talk.group,
                    "member_id": self.id if member_id is None else member_id,
                    "member_epoch": self.epoch if epoch is None else epoch,
                    "topics": [
                        {"name": self.talk.topic(suffix), "partition_indexes": list(partitions)}
                    ],
                }
            ],
            "require_stable": True,
        }
        answer = self.raw.ask("offset_fetch", 9, asked)
        return self.talk.note(f"{self.name}: offset_fetch v9", answer)


def wanting(talk, *suffixes, owned=None):
    """The protocols of a member of the classic protocol that wants these topics."""
    body = Subscription(
        topics=tuple(talk.topic(each) for each in suffixes),
        user_data=None,
        owned_partitions=tuple(
            TopicPartition(topic=talk.topic(suffix), partitions=tuple(partitions))
            for suffix, partitions in (owned or {}).items()
        ),
    )
    return (("range", INT16.pack(1) + write_message(body, 1)),)


def told(talk, suffix, *partitions):
    """What a leader of the classic protocol gives to a member."""
    held = (TopicPartition(topic=talk.topic(suffix), partitions=partitions),)
    return INT16.pack(1) + write_message(Assignment(assigned_partitions=held, user_data=None), 1)


class ClassicMember(Member):
    """One member that speaks the classic protocol, as consumers speak it."""

    def wants(self, *suffixes, owned=None):
        self.protocols = wanting(self.talk, *suffixes, owned=owned)
        return self
