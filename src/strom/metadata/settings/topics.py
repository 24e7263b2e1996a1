"""Topic settings, and the broker settings that stand in for each of them."""

from typing import Final

from strom.metadata.settings.checks import (
    AT_LEAST_0,
    AT_LEAST_1,
    GZIP_LEVEL,
    REPLICAS,
    Listed,
    OneOf,
    Range,
)
from strom.metadata.settings.definition import (
    BOOLEAN,
    CLUSTER_WIDE,
    DOUBLE,
    INT,
    LIST,
    LONG,
    MEDIUM,
    NEVER,
    STRING,
    USED,
    Setting,
)
from strom.metadata.settings.reasons import ONE_NODE, QUOTAS, TIERED

SETTINGS: Final = (
    Setting(
        "cleanup.policy",
        LIST,
        ("delete",),
        Listed(("compact", "delete")),
        MEDIUM,
        CLUSTER_WIDE,
        USED,
    ).says("What happens to old records: delete them, compact them by key, or both."),
    Setting(
        "compression.type",
        STRING,
        "producer",
        OneOf(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")),
        MEDIUM,
        CLUSTER_WIDE,
        USED,
    ).says("The codec that batches are stored with; producer keeps the one they came with."),
    Setting("compression.gzip.level", INT, -1, GZIP_LEVEL, MEDIUM, CLUSTER_WIDE, USED).says(
        "The level used when the broker compresses with gzip."
    ),
    Setting("compression.lz4.level", INT, 9, Range(1, 17), MEDIUM, CLUSTER_WIDE, USED).says(
        "The level used when the broker compresses with lz4."
    ),
    Setting("compression.zstd.level", INT, 3, Range(-131_072, 22), MEDIUM, CLUSTER_WIDE, USED).says(
        "The level used when the broker compresses with zstd."
    ),
    Setting("delete.retention.ms", LONG, 86_400_000, AT_LEAST_0, MEDIUM, CLUSTER_WIDE, USED).says(
        "How long tombstones stay in a compacted log."
    ),
    Setting("file.delete.delay.ms", LONG, 60_000, AT_LEAST_0, MEDIUM, CLUSTER_WIDE, USED).says(
        "How long the files of a removed segment stay on disk before they are deleted."
    ),
    Setting("flush.messages", LONG, NEVER, AT_LEAST_1, MEDIUM, CLUSTER_WIDE, USED).says(
        "The number of records after which a partition is synced to disk."
    ),
    Setting("flush.ms", LONG, NEVER, AT_LEAST_0, MEDIUM, CLUSTER_WIDE, USED).says(
        "The longest that a record waits before it is synced to disk."
    ),
    Setting(
        "follower.replication.throttled.replicas", LIST, (), REPLICAS, MEDIUM, CLUSTER_WIDE, QUOTAS
    ).says("Followers that are throttled, as partition:broker, or * for all."),
    Setting("index.interval.bytes", INT, 4096, AT_LEAST_0, MEDIUM, CLUSTER_WIDE, USED).says(
        "How many bytes of records lie between two entries of the offset index."
    ),
    Setting("internal.segment.bytes", INT, None, None, MEDIUM, CLUSTER_WIDE, USED).says(
        "A segment size below the usual minimum, for tests."
    ),
    Setting(
        "leader.replication.throttled.replicas", LIST, (), REPLICAS, MEDIUM, CLUSTER_WIDE, QUOTAS
    ).says("Leaders that throttle their followers, as partition:broker, or * for all."),
    Setting("local.retention.bytes", LONG, -2, Range(-2), MEDIUM, CLUSTER_WIDE, TIERED).says(
        "How many bytes stay on local disks once copied; -2 takes the whole retention size."
    ),
    Setting("local.retention.ms", LONG, -2, Range(-2), MEDIUM, CLUSTER_WIDE, TIERED).says(
        "How long segments stay on local disks once copied; -2 takes the whole retention time."
    ),
    Setting("max.compaction.lag.ms", LONG, NEVER, AT_LEAST_1, MEDIUM, CLUSTER_WIDE, USED).says(
        "The most time that a record may wait to be compacted."
    ),
    Setting("max.message.bytes", INT, 1_048_588, AT_LEAST_0, MEDIUM, CLUSTER_WIDE, USED).says(
        "The largest record batch that is taken, after compression."
    ),
    Setting(
        "message.timestamp.after.max.ms", LONG, 3_600_000, AT_LEAST_0, MEDIUM, CLUSTER_WIDE, USED
    ).says("How far a record's time may lie after the broker's clock."),
    Setting(
        "message.timestamp.before.max.ms", LONG, NEVER, AT_LEAST_0, MEDIUM, CLUSTER_WIDE, USED
    ).says("How far a record's time may lie before the broker's clock."),
    Setting(
        "message.timestamp.type",
        STRING,
        "CreateTime",
        OneOf(("CreateTime", "LogAppendTime")),
        MEDIUM,
        CLUSTER_WIDE,
        USED,
    ).says(
        "Whether a record's time is the producer's (CreateTime) or the broker's (LogAppendTime)."
    ),
    Setting("min.cleanable.dirty.ratio", DOUBLE, 0.5, Range(0, 1), MEDIUM, CLUSTER_WIDE, USED).says(
        "The share of the log that must be uncompacted before it is worth compacting."
    ),
    Setting("min.compaction.lag.ms", LONG, 0, AT_LEAST_0, MEDIUM, CLUSTER_WIDE, USED).says(
        "The least time that a record stays uncompacted."
    ),
    Setting("min.insync.replicas", INT, 1, AT_LEAST_1, MEDIUM, CLUSTER_WIDE, USED).says(
        "How many replicas must be in sync for acks=all to be accepted."
    ),
    Setting("preallocate", BOOLEAN, False, None, MEDIUM, CLUSTER_WIDE, USED).says(
        "Whether a new segment's file gets its full size at once."
    ),
    Setting("remote.log.copy.disable", BOOLEAN, False, None, MEDIUM, CLUSTER_WIDE, TIERED).says(
        "Whether copying to remote storage stops while what is there stays readable."
    ),
    Setting(
        "remote.log.delete.on.disable", BOOLEAN, False, None, MEDIUM, CLUSTER_WIDE, TIERED
    ).says("Whether remote data goes when remote storage is switched off."),
    Setting("remote.storage.enable", BOOLEAN, False, None, MEDIUM, CLUSTER_WIDE, TIERED).says(
        "Whether old segments of the topic may go to remote storage."
    ),
    Setting("retention.bytes", LONG, -1, None, MEDIUM, CLUSTER_WIDE, USED).says(
        "The size a partition may reach before its oldest segments go; -1 sets no limit."
    ),
    Setting("retention.ms", LONG, 604_800_000, Range(-1), MEDIUM, CLUSTER_WIDE, USED).says(
        "How long records are kept; -1 keeps them for ever."
    ),
    Setting("segment.bytes", INT, 1_073_741_824, Range(1_048_576), MEDIUM, CLUSTER_WIDE, USED).says(
        "The size at which a segment is closed and the next one begun."
    ),
    Setting("segment.index.bytes", INT, 10_485_760, Range(4), MEDIUM, CLUSTER_WIDE, USED).says(
        "The most bytes that a segment's index may take."
    ),
    Setting("segment.jitter.ms", LONG, 0, AT_LEAST_0, MEDIUM, CLUSTER_WIDE, USED).says(
        "The most that chance takes off a segment's age, so that not all roll at once."
    ),
    Setting("segment.ms", LONG, 604_800_000, AT_LEAST_1, MEDIUM, CLUSTER_WIDE, USED).says(
        "The age at which a segment is closed even if it is not full."
    ),
    Setting(
        "unclean.leader.election.enable", BOOLEAN, False, None, MEDIUM, CLUSTER_WIDE, ONE_NODE
    ).says(
        "Whether a replica that lags may lead when no other is left, at the cost of lost records."
    ),
)
