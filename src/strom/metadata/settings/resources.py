"""Settings of single groups and of subscriptions to client metrics."""

from typing import Final

from strom.metadata.settings.checks import (
    ANY_LIST,
    AT_LEAST_0,
    AT_LEAST_1,
    OFFSET_RESET,
    OneOf,
    Range,
)
from strom.metadata.settings.definition import (
    BOOLEAN,
    CLUSTER_WIDE,
    INT,
    LIST,
    MEDIUM,
    STRING,
    USED,
    Setting,
)
from strom.metadata.settings.reasons import SHARE, STREAMS

#: What can be set for one group.
GROUP: Final = (
    Setting(
        "consumer.session.timeout.ms", INT, 45_000, AT_LEAST_1, MEDIUM, CLUSTER_WIDE, USED
    ).says("How long a member of the consumer group may be silent."),
    Setting(
        "consumer.heartbeat.interval.ms", INT, 5000, AT_LEAST_1, MEDIUM, CLUSTER_WIDE, USED
    ).says("How often members of the consumer group send heartbeats."),
    Setting(
        "consumer.assignment.interval.ms", INT, 1000, AT_LEAST_0, MEDIUM, CLUSTER_WIDE, USED
    ).says("The least time between two assignments of the consumer group."),
    Setting("share.session.timeout.ms", INT, 45_000, AT_LEAST_1, MEDIUM, CLUSTER_WIDE, SHARE).says(
        "How long a member of the share group may be silent."
    ),
    Setting("share.heartbeat.interval.ms", INT, 5000, AT_LEAST_1, MEDIUM, CLUSTER_WIDE, SHARE).says(
        "How often members of the share group send heartbeats."
    ),
    Setting(
        "share.assignment.interval.ms", INT, 1000, AT_LEAST_0, MEDIUM, CLUSTER_WIDE, SHARE
    ).says("The least time between two assignments of the share group."),
    Setting(
        "share.record.lock.duration.ms", INT, 30_000, Range(1000), MEDIUM, CLUSTER_WIDE, SHARE
    ).says("How long a consumer holds a record before another may get it."),
    Setting("share.delivery.count.limit", INT, 5, Range(2), MEDIUM, CLUSTER_WIDE, SHARE).says(
        "How often a record is tried before it is given up."
    ),
    Setting(
        "share.partition.max.record.locks", INT, 2000, Range(100), MEDIUM, CLUSTER_WIDE, SHARE
    ).says("How many records of a partition may be held at once."),
    Setting(
        "share.auto.offset.reset", STRING, "latest", OFFSET_RESET, MEDIUM, CLUSTER_WIDE, SHARE
    ).says("Where a new share group begins to read."),
    Setting(
        "share.isolation.level",
        STRING,
        "read_uncommitted",
        OneOf(("read_committed", "read_uncommitted")),
        MEDIUM,
        CLUSTER_WIDE,
        SHARE,
    ).says("Whether records of open or aborted transactions are delivered."),
    Setting(
        "share.renew.acknowledge.enable", BOOLEAN, True, None, MEDIUM, CLUSTER_WIDE, SHARE
    ).says("Whether a consumer may prolong its hold on a record."),
    Setting(
        "streams.session.timeout.ms", INT, 45_000, AT_LEAST_1, MEDIUM, CLUSTER_WIDE, STREAMS
    ).says("How long a member of the streams group may be silent."),
    Setting(
        "streams.heartbeat.interval.ms", INT, 5000, AT_LEAST_1, MEDIUM, CLUSTER_WIDE, STREAMS
    ).says("How often members of the streams group send heartbeats."),
    Setting(
        "streams.assignment.interval.ms", INT, 1000, AT_LEAST_0, MEDIUM, CLUSTER_WIDE, STREAMS
    ).says("The least time between two assignments of the streams group."),
    Setting(
        "streams.initial.rebalance.delay.ms", INT, 3000, AT_LEAST_0, MEDIUM, CLUSTER_WIDE, STREAMS
    ).says("How long the empty streams group waits for more members."),
    Setting("streams.num.standby.replicas", INT, 0, AT_LEAST_0, MEDIUM, CLUSTER_WIDE, STREAMS).says(
        "How many standby copies of a task's state are kept."
    ),
)

#: What can be set for one subscription to the metrics of clients (KIP-714).
CLIENT_METRICS: Final = (
    Setting("interval.ms", INT, 300_000, None, MEDIUM, CLUSTER_WIDE, USED).says(
        "How often the chosen clients push their metrics."
    ),
    Setting("match", LIST, (), ANY_LIST, MEDIUM, CLUSTER_WIDE, USED).says(
        "Which clients are meant, as property=pattern, separated by commas."
    ),
    Setting("metrics", LIST, (), ANY_LIST, MEDIUM, CLUSTER_WIDE, USED).says(
        "The prefixes of the metrics that are wanted; * is all."
    ),
)
