"""Broker settings of tiered storage."""

from typing import Final

from strom.metadata.settings.checks import AT_LEAST_0, AT_LEAST_1, FILLED, Range
from strom.metadata.settings.definition import (
    BOOLEAN,
    CLUSTER_WIDE,
    DOUBLE,
    INT,
    LONG,
    LOW,
    MEDIUM,
    NEVER,
    READ_ONLY,
    STRING,
    Setting,
)
from strom.metadata.settings.reasons import TIERED

SETTINGS: Final = (
    Setting(
        "remote.log.storage.system.enable", BOOLEAN, False, None, MEDIUM, READ_ONLY, TIERED
    ).says("Whether old segments may go to remote storage."),
    Setting(
        "remote.log.storage.manager.class.name", STRING, None, FILLED, MEDIUM, READ_ONLY, TIERED
    ).says("The class that stores segments remotely."),
    Setting(
        "remote.log.storage.manager.class.path", STRING, None, None, MEDIUM, READ_ONLY, TIERED
    ).says("Where that class and its libraries are."),
    Setting(
        "remote.log.storage.manager.impl.prefix",
        STRING,
        "rsm.config.",
        FILLED,
        MEDIUM,
        READ_ONLY,
        TIERED,
    ).says("The prefix of the settings that are handed to that class."),
    Setting(
        "remote.log.metadata.manager.class.name",
        STRING,
        "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
        FILLED,
        MEDIUM,
        READ_ONLY,
        TIERED,
    ).says("The class that keeps track of remote segments."),
    Setting(
        "remote.log.metadata.manager.class.path", STRING, None, None, MEDIUM, READ_ONLY, TIERED
    ).says("Where that class and its libraries are."),
    Setting(
        "remote.log.metadata.manager.impl.prefix",
        STRING,
        "rlmm.config.",
        FILLED,
        MEDIUM,
        READ_ONLY,
        TIERED,
    ).says("The prefix of the settings that are handed to that class."),
    Setting(
        "remote.log.metadata.manager.listener.name", STRING, None, FILLED, MEDIUM, READ_ONLY, TIERED
    ).says("The listener that it reaches the brokers by."),
    Setting(
        "remote.log.metadata.custom.metadata.max.bytes",
        INT,
        128,
        AT_LEAST_0,
        LOW,
        READ_ONLY,
        TIERED,
    ).says("The most bytes that a storage class may add to a segment's record."),
    Setting(
        "remote.log.index.file.cache.total.size.bytes",
        LONG,
        1_073_741_824,
        AT_LEAST_1,
        LOW,
        CLUSTER_WIDE,
        TIERED,
    ).says("The disk space for indexes of remote segments."),
    Setting(
        "remote.log.index.file.cache.ttl.ms", LONG, 900_000, Range(-1), LOW, READ_ONLY, TIERED
    ).says("How long such an index is kept after its last use."),
    Setting(
        "remote.log.manager.thread.pool.size", INT, 2, AT_LEAST_1, MEDIUM, READ_ONLY, TIERED
    ).says("Threads of the remote log's regular work."),
    Setting(
        "remote.log.manager.copier.thread.pool.size",
        INT,
        10,
        AT_LEAST_1,
        MEDIUM,
        CLUSTER_WIDE,
        TIERED,
    ).says("Threads that copy segments away."),
    Setting(
        "remote.log.manager.expiration.thread.pool.size",
        INT,
        10,
        AT_LEAST_1,
        MEDIUM,
        CLUSTER_WIDE,
        TIERED,
    ).says("Threads that delete expired remote segments."),
    Setting(
        "remote.log.manager.follower.thread.pool.size",
        INT,
        2,
        AT_LEAST_1,
        MEDIUM,
        CLUSTER_WIDE,
        TIERED,
    ).says("Threads for the followers' share of the work."),
    Setting(
        "remote.log.manager.task.interval.ms", LONG, 30_000, AT_LEAST_1, LOW, READ_ONLY, TIERED
    ).says("How often segments are looked for that can be copied or deleted."),
    Setting(
        "remote.log.manager.task.retry.backoff.ms", LONG, 500, AT_LEAST_1, LOW, READ_ONLY, TIERED
    ).says("The first rest after such work failed."),
    Setting(
        "remote.log.manager.task.retry.backoff.max.ms",
        LONG,
        30_000,
        AT_LEAST_1,
        LOW,
        READ_ONLY,
        TIERED,
    ).says("The longest rest after such work failed."),
    Setting(
        "remote.log.manager.task.retry.jitter", DOUBLE, 0.2, Range(0, 0.5), LOW, READ_ONLY, TIERED
    ).says("The share of that rest that is varied at random."),
    Setting(
        "remote.log.manager.copy.max.bytes.per.second",
        LONG,
        NEVER,
        AT_LEAST_1,
        MEDIUM,
        CLUSTER_WIDE,
        TIERED,
    ).says("The most bytes a second that are copied away."),
    Setting(
        "remote.log.manager.copy.quota.window.num", INT, 11, AT_LEAST_1, MEDIUM, READ_ONLY, TIERED
    ).says("How many windows the copy rate is measured over."),
    Setting(
        "remote.log.manager.copy.quota.window.size.seconds",
        INT,
        1,
        AT_LEAST_1,
        MEDIUM,
        READ_ONLY,
        TIERED,
    ).says("The length of each such window."),
    Setting(
        "remote.log.manager.fetch.max.bytes.per.second",
        LONG,
        NEVER,
        AT_LEAST_1,
        MEDIUM,
        CLUSTER_WIDE,
        TIERED,
    ).says("The most bytes a second that are read back."),
    Setting(
        "remote.log.manager.fetch.quota.window.num", INT, 11, AT_LEAST_1, MEDIUM, READ_ONLY, TIERED
    ).says("How many windows the read rate is measured over."),
    Setting(
        "remote.log.manager.fetch.quota.window.size.seconds",
        INT,
        1,
        AT_LEAST_1,
        MEDIUM,
        READ_ONLY,
        TIERED,
    ).says("The length of each such window."),
    Setting("remote.log.reader.threads", INT, 10, AT_LEAST_1, MEDIUM, CLUSTER_WIDE, TIERED).says(
        "Threads that read remote segments."
    ),
    Setting(
        "remote.log.reader.max.pending.tasks", INT, 100, AT_LEAST_1, MEDIUM, READ_ONLY, TIERED
    ).says("How many remote reads may wait."),
    Setting("remote.fetch.max.wait.ms", INT, 500, AT_LEAST_1, MEDIUM, CLUSTER_WIDE, TIERED).says(
        "How long a fetch waits for a remote read."
    ),
    Setting(
        "remote.list.offsets.request.timeout.ms",
        LONG,
        30_000,
        AT_LEAST_1,
        MEDIUM,
        CLUSTER_WIDE,
        TIERED,
    ).says("How long a look-up of offsets waits for a remote read."),
    Setting("log.local.retention.ms", LONG, -2, Range(-2), MEDIUM, CLUSTER_WIDE, TIERED).says(
        "How long segments stay on local disks once copied; -2 takes the whole retention time."
    ),
    Setting("log.local.retention.bytes", LONG, -2, Range(-2), MEDIUM, CLUSTER_WIDE, TIERED).says(
        "How many bytes stay on local disks once copied; -2 takes the whole retention size."
    ),
    Setting(
        "follower.fetch.last.tiered.offset.enable",
        BOOLEAN,
        False,
        None,
        MEDIUM,
        CLUSTER_WIDE,
        TIERED,
    ).says("Whether an empty follower starts after what is stored remotely."),
)
