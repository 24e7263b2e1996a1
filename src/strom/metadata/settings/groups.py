"""Broker settings of consumer and streams groups and of committed offsets."""

from collections.abc import Mapping
from typing import Final

from strom.metadata.settings.checks import AT_LEAST_0, AT_LEAST_1, FILLED_LIST, Listed, OneOf, Range
from strom.metadata.settings.definition import (
    CLUSTER_WIDE,
    HIGH,
    INT,
    INT_MAX,
    LIST,
    LONG,
    MEDIUM,
    READ_ONLY,
    SHORT,
    STRING,
    USED,
    Setting,
)
from strom.metadata.settings.reasons import ONE_LOOP, ONE_WRITE, STREAMS

#: What `group.consumer.assignors` takes, by the name that clients use: also Kafka's classes.
ASSIGNOR_NAMES: Final[Mapping[str, str]] = {
    "uniform": "uniform",
    "range": "range",
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
}

SETTINGS: Final = (
    Setting("group.min.session.timeout.ms", INT, 6000, None, MEDIUM, READ_ONLY, USED).says(
        "The shortest session time-out that a classic member may ask for."
    ),
    Setting("group.max.session.timeout.ms", INT, 1_800_000, None, MEDIUM, READ_ONLY, USED).says(
        "The longest session time-out that a classic member may ask for."
    ),
    Setting("group.initial.rebalance.delay.ms", INT, 3000, None, MEDIUM, READ_ONLY, USED).says(
        "How long an empty group waits for more members before its first rebalance."
    ),
    Setting("group.max.size", INT, INT_MAX, AT_LEAST_1, MEDIUM, READ_ONLY, USED).says(
        "How many members a classic group may have."
    ),
    Setting(
        "group.coordinator.rebalance.protocols",
        LIST,
        (
            "classic",
            "consumer",
            "streams",
        ),
        Listed(("consumer", "classic", "share", "streams"), may_be_empty=False),
        MEDIUM,
        READ_ONLY,
        USED,
    ).says("The group protocols that are served."),
    Setting("group.coordinator.threads", INT, 4, AT_LEAST_1, HIGH, READ_ONLY, ONE_LOOP).says(
        "Threads that coordinate groups."
    ),
    Setting(
        "group.coordinator.background.threads", INT, 2, AT_LEAST_1, HIGH, READ_ONLY, ONE_LOOP
    ).says("Threads for the coordinators' work in the background."),
    Setting(
        "group.coordinator.append.linger.ms", INT, -1, Range(-1), MEDIUM, READ_ONLY, ONE_WRITE
    ).says("How long a coordinator collects writes; -1 adapts to the load."),
    Setting(
        "group.coordinator.cached.buffer.max.bytes",
        INT,
        1_048_588,
        Range(524_288),
        MEDIUM,
        CLUSTER_WIDE,
        ONE_WRITE,
    ).says("The largest write buffer that a coordinator keeps for the next write."),
    Setting(
        "group.consumer.session.timeout.ms", INT, 45_000, AT_LEAST_1, MEDIUM, READ_ONLY, USED
    ).says("How long a consumer group member may be silent."),
    Setting(
        "group.consumer.min.session.timeout.ms", INT, 45_000, AT_LEAST_1, MEDIUM, READ_ONLY, USED
    ).says("The shortest session time-out that a consumer group may set."),
    Setting(
        "group.consumer.max.session.timeout.ms", INT, 60_000, AT_LEAST_1, MEDIUM, READ_ONLY, USED
    ).says("The longest session time-out that a consumer group may set."),
    Setting(
        "group.consumer.heartbeat.interval.ms", INT, 5000, AT_LEAST_1, MEDIUM, READ_ONLY, USED
    ).says("How often consumer group members send heartbeats."),
    Setting(
        "group.consumer.min.heartbeat.interval.ms", INT, 5000, AT_LEAST_1, MEDIUM, READ_ONLY, USED
    ).says("The shortest heartbeat interval that a consumer group may set."),
    Setting(
        "group.consumer.max.heartbeat.interval.ms",
        INT,
        15_000,
        AT_LEAST_1,
        MEDIUM,
        READ_ONLY,
        USED,
    ).says("The longest heartbeat interval that a consumer group may set."),
    Setting(
        "group.consumer.assignment.interval.ms", INT, 1000, AT_LEAST_0, MEDIUM, CLUSTER_WIDE, USED
    ).says("The least time between two assignments of a consumer group."),
    Setting(
        "group.consumer.min.assignment.interval.ms", INT, 0, AT_LEAST_0, MEDIUM, READ_ONLY, USED
    ).says("The shortest assignment interval that a consumer group may set."),
    Setting(
        "group.consumer.max.assignment.interval.ms",
        INT,
        15_000,
        AT_LEAST_0,
        MEDIUM,
        READ_ONLY,
        USED,
    ).says("The longest assignment interval that a consumer group may set."),
    Setting("group.consumer.max.size", INT, INT_MAX, AT_LEAST_1, MEDIUM, READ_ONLY, USED).says(
        "How many members a consumer group may have."
    ),
    Setting(
        "group.consumer.assignors",
        LIST,
        (
            "uniform",
            "range",
        ),
        FILLED_LIST,
        MEDIUM,
        READ_ONLY,
        USED,
    ).says("The server-side assignors of consumer groups; the first is the default."),
    Setting(
        "group.consumer.migration.policy",
        STRING,
        "bidirectional",
        OneOf(("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"), ignores_case=True),
        MEDIUM,
        READ_ONLY,
        USED,
    ).says("Which changes between the classic and the consumer protocol are allowed."),
    Setting(
        "group.consumer.regex.refresh.interval.ms",
        INT,
        600_000,
        Range(10000),
        MEDIUM,
        READ_ONLY,
        USED,
    ).says("How often subscriptions by pattern are matched against the topics again."),
    Setting(
        "group.streams.session.timeout.ms", INT, 45_000, AT_LEAST_1, MEDIUM, READ_ONLY, STREAMS
    ).says("How long a streams group member may be silent."),
    Setting(
        "group.streams.min.session.timeout.ms", INT, 45_000, AT_LEAST_1, MEDIUM, READ_ONLY, STREAMS
    ).says("The shortest session time-out that a streams group may set."),
    Setting(
        "group.streams.max.session.timeout.ms", INT, 60_000, AT_LEAST_1, MEDIUM, READ_ONLY, STREAMS
    ).says("The longest session time-out that a streams group may set."),
    Setting(
        "group.streams.heartbeat.interval.ms", INT, 5000, AT_LEAST_1, MEDIUM, READ_ONLY, STREAMS
    ).says("How often streams group members send heartbeats."),
    Setting(
        "group.streams.min.heartbeat.interval.ms", INT, 5000, AT_LEAST_1, MEDIUM, READ_ONLY, STREAMS
    ).says("The shortest heartbeat interval that a streams group may set."),
    Setting(
        "group.streams.max.heartbeat.interval.ms",
        INT,
        15_000,
        AT_LEAST_1,
        MEDIUM,
        READ_ONLY,
        STREAMS,
    ).says("The longest heartbeat interval that a streams group may set."),
    Setting(
        "group.streams.assignment.interval.ms", INT, 1000, AT_LEAST_0, MEDIUM, CLUSTER_WIDE, STREAMS
    ).says("The least time between two assignments of a streams group."),
    Setting(
        "group.streams.min.assignment.interval.ms", INT, 0, AT_LEAST_0, MEDIUM, READ_ONLY, STREAMS
    ).says("The shortest assignment interval that a streams group may set."),
    Setting(
        "group.streams.max.assignment.interval.ms",
        INT,
        15_000,
        AT_LEAST_0,
        MEDIUM,
        READ_ONLY,
        STREAMS,
    ).says("The longest assignment interval that a streams group may set."),
    Setting(
        "group.streams.initial.rebalance.delay.ms",
        INT,
        3000,
        AT_LEAST_0,
        MEDIUM,
        READ_ONLY,
        STREAMS,
    ).says("How long an empty streams group waits for more members."),
    Setting(
        "group.streams.num.standby.replicas", INT, 0, AT_LEAST_0, MEDIUM, READ_ONLY, STREAMS
    ).says("How many standby copies of a task's state are kept."),
    Setting(
        "group.streams.max.standby.replicas", INT, 2, AT_LEAST_0, MEDIUM, READ_ONLY, STREAMS
    ).says("The most standby copies that a streams group may set."),
    Setting("group.streams.max.size", INT, INT_MAX, AT_LEAST_1, MEDIUM, READ_ONLY, STREAMS).says(
        "How many members a streams group may have."
    ),
    Setting("offset.metadata.max.bytes", INT, 4096, None, HIGH, READ_ONLY, USED).says(
        "The longest text that may come with a committed offset."
    ),
    Setting("offsets.commit.timeout.ms", INT, 5000, AT_LEAST_1, HIGH, READ_ONLY, USED).says(
        "How long a commit of offsets waits to be replicated."
    ),
    Setting("offsets.load.buffer.size", INT, 5_242_880, AT_LEAST_1, HIGH, READ_ONLY, USED).says(
        "How many bytes at a time are read when offsets are loaded."
    ),
    Setting("offsets.retention.minutes", INT, 10_080, AT_LEAST_1, HIGH, READ_ONLY, USED).says(
        "How long the offsets of a group without members are kept."
    ),
    Setting(
        "offsets.retention.check.interval.ms", LONG, 600_000, AT_LEAST_1, HIGH, READ_ONLY, USED
    ).says("How often expired offsets are looked for."),
    Setting("offsets.topic.compression.codec", INT, 0, None, HIGH, READ_ONLY, USED).says(
        "The number of the codec of the offsets topic; 0 is none."
    ),
    Setting("offsets.topic.num.partitions", INT, 50, AT_LEAST_1, HIGH, READ_ONLY, USED).says(
        "How many partitions the offsets topic gets."
    ),
    Setting("offsets.topic.replication.factor", SHORT, 3, AT_LEAST_1, HIGH, READ_ONLY, USED).says(
        "How many replicas the offsets topic gets."
    ),
    Setting(
        "offsets.topic.segment.bytes", INT, 104_857_600, AT_LEAST_1, HIGH, READ_ONLY, USED
    ).says("The segment size of the offsets topic."),
)
