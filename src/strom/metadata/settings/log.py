"""Broker settings of the logs: directories, segments, retention, flushing, compaction."""

from typing import Final

from strom.metadata.settings.checks import (
    ANY_LIST,
    AT_LEAST_0,
    AT_LEAST_1,
    FILLED_LIST,
    GZIP_LEVEL,
    Listed,
    OneOf,
    Range,
)
from strom.metadata.settings.definition import (
    BOOLEAN,
    CLUSTER_WIDE,
    DOUBLE,
    DOUBLE_MAX,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    NEVER,
    PER_BROKER,
    READ_ONLY,
    STRING,
    USED,
    Setting,
)
from strom.metadata.settings.reasons import CLEANER, OFFLINE, ONE_AT_A_TIME

SETTINGS: Final = (
    Setting("log.dir", LIST, ("/tmp/kafka-logs",), FILLED_LIST, HIGH, READ_ONLY, USED).says(
        "The data directory to use when log.dirs is not given."
    ),
    Setting("log.dirs", LIST, None, FILLED_LIST, HIGH, READ_ONLY, USED).says(
        "The directories that hold the partitions, separated by commas; one disk each is usual."
    ),
    Setting("cordoned.log.dirs", LIST, (), ANY_LIST, MEDIUM, PER_BROKER, USED).says(
        "Directories that get no new partitions; * means all of them."
    ),
    Setting("log.dir.failure.timeout.ms", LONG, 30_000, AT_LEAST_1, LOW, READ_ONLY, OFFLINE).says(
        "How long a broker serves on when it cannot report a failed directory."
    ),
    Setting(
        "log.segment.bytes", INT, 1_073_741_824, Range(1_048_576), HIGH, CLUSTER_WIDE, USED
    ).says("The size at which a segment is closed and the next one begun."),
    Setting("log.roll.ms", LONG, None, None, HIGH, CLUSTER_WIDE, USED).says(
        "The age at which a segment is closed even if it is not full."
    ),
    Setting("log.roll.hours", INT, 168, AT_LEAST_1, HIGH, READ_ONLY, USED).says(
        "The same age in hours, used when log.roll.ms is not given."
    ),
    Setting("log.roll.jitter.ms", LONG, None, None, HIGH, CLUSTER_WIDE, USED).says(
        "The most that chance takes off a segment's age, so that not all roll at once."
    ),
    Setting("log.roll.jitter.hours", INT, 0, AT_LEAST_0, HIGH, READ_ONLY, USED).says(
        "The same in hours, used when log.roll.jitter.ms is not given."
    ),
    Setting("log.retention.ms", LONG, None, None, HIGH, CLUSTER_WIDE, USED).says(
        "How long records are kept; -1 keeps them for ever."
    ),
    Setting("log.retention.minutes", INT, None, None, HIGH, READ_ONLY, USED).says(
        "The same in minutes, used when log.retention.ms is not given."
    ),
    Setting("log.retention.hours", INT, 168, None, HIGH, READ_ONLY, USED).says(
        "The same in hours, used when neither milliseconds nor minutes are given."
    ),
    Setting("log.retention.bytes", LONG, -1, None, HIGH, CLUSTER_WIDE, USED).says(
        "The size a partition may reach before its oldest segments go; -1 sets no limit."
    ),
    Setting(
        "log.retention.check.interval.ms", LONG, 300_000, AT_LEAST_1, MEDIUM, READ_ONLY, USED
    ).says("How often segments are checked for having outlived their retention."),
    Setting("log.initial.task.delay.ms", LONG, 30_000, AT_LEAST_0, LOW, READ_ONLY, USED).says(
        "How long after the start the regular log work first runs."
    ),
    Setting("log.segment.delete.delay.ms", LONG, 60_000, AT_LEAST_0, HIGH, CLUSTER_WIDE, USED).says(
        "How long the files of a removed segment stay on disk before they are deleted."
    ),
    Setting(
        "log.cleanup.policy",
        LIST,
        ("delete",),
        Listed(("compact", "delete")),
        MEDIUM,
        CLUSTER_WIDE,
        USED,
    ).says("What happens to old records: delete them, compact them by key, or both."),
    Setting("log.index.size.max.bytes", INT, 10_485_760, Range(4), MEDIUM, CLUSTER_WIDE, USED).says(
        "The most bytes that a segment's index may take."
    ),
    Setting("log.index.interval.bytes", INT, 4096, AT_LEAST_0, MEDIUM, CLUSTER_WIDE, USED).says(
        "How many bytes of records lie between two entries of the offset index."
    ),
    Setting("log.flush.interval.messages", LONG, NEVER, AT_LEAST_1, HIGH, CLUSTER_WIDE, USED).says(
        "The number of records after which a partition is synced to disk."
    ),
    Setting("log.flush.interval.ms", LONG, None, None, HIGH, CLUSTER_WIDE, USED).says(
        "The longest that a record waits before it is synced to disk."
    ),
    Setting("log.flush.scheduler.interval.ms", LONG, NEVER, None, HIGH, READ_ONLY, USED).says(
        "How often it is checked whether a partition must be synced."
    ),
    Setting(
        "log.flush.offset.checkpoint.interval.ms", INT, 60_000, AT_LEAST_0, HIGH, READ_ONLY, USED
    ).says("How often the recovery points are written to their checkpoint file."),
    Setting(
        "log.flush.start.offset.checkpoint.interval.ms",
        INT,
        60_000,
        AT_LEAST_0,
        HIGH,
        READ_ONLY,
        USED,
    ).says("How often the log start offsets are written to their checkpoint file."),
    Setting("log.preallocate", BOOLEAN, False, None, MEDIUM, CLUSTER_WIDE, USED).says(
        "Whether a new segment's file gets its full size at once."
    ),
    Setting(
        "num.recovery.threads.per.data.dir", INT, 2, AT_LEAST_1, HIGH, CLUSTER_WIDE, ONE_AT_A_TIME
    ).says("Threads for each directory that recover logs at start and flush them at the end."),
    Setting("message.max.bytes", INT, 1_048_588, AT_LEAST_0, HIGH, CLUSTER_WIDE, USED).says(
        "The largest record batch that is taken, after compression."
    ),
    Setting(
        "log.message.timestamp.type",
        STRING,
        "CreateTime",
        OneOf(("CreateTime", "LogAppendTime")),
        MEDIUM,
        CLUSTER_WIDE,
        USED,
    ).says(
        "Whether a record's time is the producer's (CreateTime) or the broker's (LogAppendTime)."
    ),
    Setting(
        "log.message.timestamp.before.max.ms", LONG, NEVER, AT_LEAST_0, MEDIUM, CLUSTER_WIDE, USED
    ).says("How far a record's time may lie before the broker's clock."),
    Setting(
        "log.message.timestamp.after.max.ms",
        LONG,
        3_600_000,
        AT_LEAST_0,
        MEDIUM,
        CLUSTER_WIDE,
        USED,
    ).says("How far a record's time may lie after the broker's clock."),
    Setting(
        "compression.type",
        STRING,
        "producer",
        OneOf(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")),
        HIGH,
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
    Setting("log.cleaner.enable", BOOLEAN, True, None, MEDIUM, READ_ONLY, USED).says(
        "Whether the cleaner that compacts logs runs."
    ),
    Setting("log.cleaner.threads", INT, 1, AT_LEAST_0, MEDIUM, CLUSTER_WIDE, USED).says(
        "How many logs are compacted at the same time, each in a process of its own."
    ),
    Setting("log.cleaner.backoff.ms", LONG, 15_000, AT_LEAST_0, MEDIUM, CLUSTER_WIDE, USED).says(
        "How long the cleaner rests when there was nothing to clean."
    ),
    Setting(
        "log.cleaner.dedupe.buffer.size", LONG, 134_217_728, None, MEDIUM, CLUSTER_WIDE, USED
    ).says("The memory for the map of keys while compacting."),
    Setting(
        "log.cleaner.io.buffer.load.factor", DOUBLE, 0.9, None, MEDIUM, CLUSTER_WIDE, USED
    ).says("How full the map of keys may get."),
    Setting(
        "log.cleaner.io.buffer.size", INT, 524_288, AT_LEAST_0, MEDIUM, CLUSTER_WIDE, CLEANER
    ).says("The memory for reading and writing while compacting."),
    Setting(
        "log.cleaner.io.max.bytes.per.second",
        DOUBLE,
        DOUBLE_MAX,
        None,
        MEDIUM,
        CLUSTER_WIDE,
        USED,
    ).says("The most bytes a second that the cleaner reads and writes."),
    Setting(
        "log.cleaner.min.cleanable.ratio", DOUBLE, 0.5, Range(0, 1), MEDIUM, CLUSTER_WIDE, USED
    ).says("The share of a log that must be uncompacted before it is worth compacting."),
    Setting(
        "log.cleaner.min.compaction.lag.ms", LONG, 0, AT_LEAST_0, MEDIUM, CLUSTER_WIDE, USED
    ).says("The least time that a record stays uncompacted."),
    Setting(
        "log.cleaner.max.compaction.lag.ms", LONG, NEVER, AT_LEAST_1, MEDIUM, CLUSTER_WIDE, USED
    ).says("The most time that a record may wait to be compacted."),
    Setting(
        "log.cleaner.delete.retention.ms", LONG, 86_400_000, AT_LEAST_0, MEDIUM, CLUSTER_WIDE, USED
    ).says("How long tombstones stay in a compacted log."),
    Setting("producer.id.expiration.ms", INT, 86_400_000, AT_LEAST_1, LOW, CLUSTER_WIDE, USED).says(
        "How long a partition remembers a producer that sends nothing."
    ),
    Setting(
        "producer.id.expiration.check.interval.ms", INT, 600_000, AT_LEAST_1, LOW, READ_ONLY, USED
    ).says("How often forgotten producers are looked for."),
)
