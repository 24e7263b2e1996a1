# Compiled by mypyc.
"""What can be set for one partition's log; the names are the topic settings of Kafka."""

from dataclasses import dataclass
from typing import Final

HOUR_MS: Final = 60 * 60 * 1000
DAY_MS: Final = 24 * HOUR_MS
NEVER: Final = 2**63 - 1
UNLIMITED: Final = -1

CREATE_TIME: Final = "CreateTime"
LOG_APPEND_TIME: Final = "LogAppendTime"


@dataclass(frozen=True)
class LogConfig:
    """The settings of one log, with Kafka's defaults. Shared by all logs that agree on them."""

    segment_bytes: int = 2**30
    segment_ms: int = 7 * DAY_MS
    segment_jitter_ms: int = 0
    #: `segment.index.bytes`: a segment whose index has grown to this is rolled.
    index_bytes_max: int = 10 * 1024 * 1024
    index_interval_bytes: int = 4096
    retention_ms: int = 7 * DAY_MS
    retention_bytes: int = UNLIMITED
    cleanup_delete: bool = True
    cleanup_compact: bool = False
    delete_delay_ms: int = 60_000
    #: `delete.retention.ms`, `min.compaction.lag.ms` and so on, for the cleaner.
    delete_retention_ms: int = DAY_MS
    compaction_lag_min_ms: int = 0
    compaction_lag_max_ms: int = NEVER
    cleanable_dirty_ratio_min: float = 0.5
    message_bytes_max: int = 1024 * 1024 + 12
    timestamp_type: str = CREATE_TIME
    timestamp_before_max_ms: int = NEVER
    timestamp_after_max_ms: int = HOUR_MS
    compression_type: str = "producer"
    gzip_level: int = -1
    lz4_level: int = 9
    zstd_level: int = 3
    preallocate: bool = False
    flush_messages: int = NEVER
    flush_ms: int = NEVER
    producer_expiration_ms: int = DAY_MS
    transaction_partition_verification: bool = True

    @property
    def segment_ms_max(self) -> int:
        """How long a segment is appended to: one that is never left is never compacted (CMP-07)."""
        if self.cleanup_compact:
            return min(self.segment_ms, self.compaction_lag_max_ms)
        return self.segment_ms
