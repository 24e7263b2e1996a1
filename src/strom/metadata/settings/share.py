"""Broker settings of share groups."""

from typing import Final

from strom.metadata.settings.checks import AT_LEAST_0, AT_LEAST_1, FILLED_LIST, Range
from strom.metadata.settings.definition import (
    CLUSTER_WIDE,
    HIGH,
    INT,
    LIST,
    LOW,
    MEDIUM,
    READ_ONLY,
    SHORT,
    STRING,
    Setting,
)
from strom.metadata.settings.reasons import NO_PURGATORY, ONE_LOOP, SHARE

SETTINGS: Final = (
    Setting(
        "group.share.session.timeout.ms", INT, 45_000, AT_LEAST_1, MEDIUM, READ_ONLY, SHARE
    ).says("How long a share group member may be silent."),
    Setting(
        "group.share.min.session.timeout.ms", INT, 45_000, AT_LEAST_1, MEDIUM, READ_ONLY, SHARE
    ).says("The shortest session time-out that a share group may set."),
    Setting(
        "group.share.max.session.timeout.ms", INT, 60_000, AT_LEAST_1, MEDIUM, READ_ONLY, SHARE
    ).says("The longest session time-out that a share group may set."),
    Setting(
        "group.share.heartbeat.interval.ms", INT, 5000, AT_LEAST_1, MEDIUM, READ_ONLY, SHARE
    ).says("How often share group members send heartbeats."),
    Setting(
        "group.share.min.heartbeat.interval.ms", INT, 5000, AT_LEAST_1, MEDIUM, READ_ONLY, SHARE
    ).says("The shortest heartbeat interval that a share group may set."),
    Setting(
        "group.share.max.heartbeat.interval.ms", INT, 15_000, AT_LEAST_1, MEDIUM, READ_ONLY, SHARE
    ).says("The longest heartbeat interval that a share group may set."),
    Setting(
        "group.share.assignment.interval.ms", INT, 1000, AT_LEAST_0, MEDIUM, CLUSTER_WIDE, SHARE
    ).says("The least time between two assignments of a share group."),
    Setting(
        "group.share.min.assignment.interval.ms", INT, 0, AT_LEAST_0, MEDIUM, READ_ONLY, SHARE
    ).says("The shortest assignment interval that a share group may set."),
    Setting(
        "group.share.max.assignment.interval.ms", INT, 15_000, AT_LEAST_0, MEDIUM, READ_ONLY, SHARE
    ).says("The longest assignment interval that a share group may set."),
    Setting("group.share.assignors", LIST, ("simple",), FILLED_LIST, MEDIUM, READ_ONLY, SHARE).says(
        "The assignors of share groups; one at present."
    ),
    Setting("group.share.max.size", INT, 200, Range(1, 1000), MEDIUM, READ_ONLY, SHARE).says(
        "How many members a share group may have."
    ),
    Setting("group.share.max.share.sessions", INT, 2000, AT_LEAST_1, MEDIUM, READ_ONLY, SHARE).says(
        "How many share sessions a broker remembers."
    ),
    Setting(
        "group.share.delivery.count.limit", INT, 5, Range(2, 10), MEDIUM, READ_ONLY, SHARE
    ).says("How often a record is tried before it is given up."),
    Setting(
        "group.share.min.delivery.count.limit", INT, 2, Range(2, 5), MEDIUM, READ_ONLY, SHARE
    ).says("The smallest number of tries that a share group may set."),
    Setting(
        "group.share.max.delivery.count.limit", INT, 10, Range(5, 25), MEDIUM, READ_ONLY, SHARE
    ).says("The largest number of tries that a share group may set."),
    Setting(
        "group.share.record.lock.duration.ms",
        INT,
        30_000,
        Range(1000, 3_600_000),
        MEDIUM,
        READ_ONLY,
        SHARE,
    ).says("How long a consumer holds a record before another may get it."),
    Setting(
        "group.share.min.record.lock.duration.ms",
        INT,
        15_000,
        Range(1000, 30000),
        MEDIUM,
        READ_ONLY,
        SHARE,
    ).says("The shortest hold that a share group may set."),
    Setting(
        "group.share.max.record.lock.duration.ms",
        INT,
        60_000,
        Range(30000, 3_600_000),
        MEDIUM,
        READ_ONLY,
        SHARE,
    ).says("The longest hold that a share group may set."),
    Setting(
        "group.share.partition.max.record.locks",
        INT,
        2000,
        Range(100, 10000),
        MEDIUM,
        READ_ONLY,
        SHARE,
    ).says("How many records of a partition may be held at once."),
    Setting(
        "group.share.min.partition.max.record.locks",
        INT,
        100,
        Range(100, 2000),
        MEDIUM,
        READ_ONLY,
        SHARE,
    ).says("The smallest such number that a share group may set."),
    Setting(
        "group.share.max.partition.max.record.locks",
        INT,
        4000,
        Range(2000, 10000),
        MEDIUM,
        READ_ONLY,
        SHARE,
    ).says("The largest such number that a share group may set."),
    Setting(
        "group.share.initialize.retry.interval.ms", INT, 30_000, AT_LEAST_1, LOW, READ_ONLY, SHARE
    ).says("How long to rest before the start of a share partition is tried again."),
    Setting(
        "group.share.persister.class.name",
        STRING,
        "org.apache.kafka.server.share.persister.DefaultStatePersister",
        None,
        MEDIUM,
        READ_ONLY,
        SHARE,
    ).says("The class that keeps the state of share groups."),
    Setting(
        "share.coordinator.state.topic.num.partitions", INT, 50, AT_LEAST_1, HIGH, READ_ONLY, SHARE
    ).says("How many partitions the share state topic gets."),
    Setting(
        "share.coordinator.state.topic.replication.factor",
        SHORT,
        3,
        AT_LEAST_1,
        HIGH,
        READ_ONLY,
        SHARE,
    ).says("How many replicas the share state topic gets."),
    Setting(
        "share.coordinator.state.topic.min.isr", SHORT, 2, AT_LEAST_1, HIGH, READ_ONLY, SHARE
    ).says("How many replicas of the share state topic must be in sync to write to it."),
    Setting(
        "share.coordinator.state.topic.segment.bytes",
        INT,
        104_857_600,
        AT_LEAST_1,
        HIGH,
        READ_ONLY,
        SHARE,
    ).says("The segment size of the share state topic."),
    Setting(
        "share.coordinator.state.topic.compression.codec", INT, 0, None, HIGH, READ_ONLY, SHARE
    ).says("The number of the codec of the share state topic; 0 is none."),
    Setting(
        "share.coordinator.state.topic.prune.interval.ms",
        INT,
        300_000,
        AT_LEAST_1,
        LOW,
        READ_ONLY,
        SHARE,
    ).says("How often the share state topic is rid of what is no longer needed."),
    Setting(
        "share.coordinator.snapshot.update.records.per.snapshot",
        INT,
        500,
        Range(0, 500),
        MEDIUM,
        READ_ONLY,
        SHARE,
    ).says("How many updates follow a snapshot of share state before the next."),
    Setting(
        "share.coordinator.cold.partition.snapshot.interval.ms",
        INT,
        300_000,
        AT_LEAST_1,
        LOW,
        READ_ONLY,
        SHARE,
    ).says("How often share partitions without traffic get a snapshot."),
    Setting("share.coordinator.threads", INT, 1, AT_LEAST_1, MEDIUM, READ_ONLY, ONE_LOOP).says(
        "Threads that coordinate share state."
    ),
    Setting(
        "share.coordinator.load.buffer.size", INT, 5_242_880, AT_LEAST_1, HIGH, READ_ONLY, SHARE
    ).says("How many bytes at a time are read when share state is loaded."),
    Setting(
        "share.coordinator.write.timeout.ms", INT, 5000, AT_LEAST_1, HIGH, READ_ONLY, SHARE
    ).says("How long a write of share state waits to be replicated."),
    Setting(
        "share.coordinator.append.linger.ms", INT, -1, Range(-1), MEDIUM, READ_ONLY, SHARE
    ).says("How long the share coordinator collects writes; -1 adapts to the load."),
    Setting(
        "share.coordinator.cached.buffer.max.bytes",
        INT,
        1_048_588,
        Range(524_288),
        MEDIUM,
        CLUSTER_WIDE,
        SHARE,
    ).says("The largest write buffer that the share coordinator keeps for the next write."),
    Setting(
        "share.fetch.purgatory.purge.interval.requests",
        INT,
        1000,
        None,
        MEDIUM,
        READ_ONLY,
        NO_PURGATORY,
    ).says("How many waiting share fetches pass between two purges."),
)
