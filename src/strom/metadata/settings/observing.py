"""Broker settings of metrics, telemetry and quotas."""

from typing import Final

from strom.metadata.settings.checks import ANY_LIST, AT_LEAST_0, AT_LEAST_1, Range
from strom.metadata.settings.definition import (
    CLASS,
    CLUSTER_WIDE,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    NEVER,
    READ_ONLY,
    STRING,
    USED,
    Setting,
)
from strom.metadata.settings.reasons import JAVA_METRICS, PLUGIN, QUOTAS

SETTINGS: Final = (
    Setting("strom.http.port", INT, -1, Range(-1, 65_535), MEDIUM, READ_ONLY, USED).says(
        "The port of /metrics and /healthz; 0 picks a free one, -1 serves neither. Strom's own."
    ),
    Setting("strom.http.host", STRING, "127.0.0.1", None, MEDIUM, READ_ONLY, USED).says(
        "The address of that port; empty, or 0.0.0.0, lets other machines ask. Strom's own."
    ),
    Setting(
        "metric.reporters",
        LIST,
        ("org.apache.kafka.common.metrics.JmxReporter",),
        ANY_LIST,
        LOW,
        CLUSTER_WIDE,
        JAVA_METRICS,
    ).says("Classes that report metrics."),
    Setting("metrics.num.samples", INT, 2, AT_LEAST_1, LOW, READ_ONLY, JAVA_METRICS).says(
        "How many samples a metric is computed from."
    ),
    Setting("metrics.recording.level", STRING, "INFO", None, LOW, READ_ONLY, JAVA_METRICS).says(
        "How detailed the recorded metrics are."
    ),
    Setting(
        "metrics.sample.window.ms", LONG, 30_000, AT_LEAST_1, LOW, READ_ONLY, JAVA_METRICS
    ).says("The time that each sample covers."),
    Setting("kafka.metrics.reporters", LIST, (), ANY_LIST, LOW, READ_ONLY, JAVA_METRICS).says(
        "Classes that report the older kind of metrics."
    ),
    Setting(
        "kafka.metrics.polling.interval.secs", INT, 10, AT_LEAST_1, LOW, READ_ONLY, JAVA_METRICS
    ).says("How often those classes are called."),
    Setting("telemetry.max.bytes", INT, 1_048_576, AT_LEAST_1, LOW, READ_ONLY, USED).says(
        "The most bytes of metrics that a client may push at once."
    ),
    Setting("config.providers", LIST, (), ANY_LIST, LOW, CLUSTER_WIDE, PLUGIN).says(
        "Sources from which values in the file may be taken."
    ),
    Setting("client.quota.callback.class", CLASS, None, None, LOW, READ_ONLY, PLUGIN).says(
        "The class that decides which quota applies to a client."
    ),
    Setting("quota.window.num", INT, 11, AT_LEAST_1, LOW, READ_ONLY, QUOTAS).says(
        "How many windows a client's rate is measured over."
    ),
    Setting("quota.window.size.seconds", INT, 1, AT_LEAST_1, LOW, READ_ONLY, QUOTAS).says(
        "The length of each such window."
    ),
    Setting("controller.quota.window.num", INT, 11, AT_LEAST_1, LOW, READ_ONLY, QUOTAS).says(
        "How many windows the rate of topic changes is measured over."
    ),
    Setting(
        "controller.quota.window.size.seconds", INT, 1, AT_LEAST_1, LOW, READ_ONLY, QUOTAS
    ).says("The length of each such window."),
    Setting("replication.quota.window.num", INT, 11, AT_LEAST_1, LOW, READ_ONLY, QUOTAS).says(
        "How many windows the replication rate is measured over."
    ),
    Setting(
        "replication.quota.window.size.seconds", INT, 1, AT_LEAST_1, LOW, READ_ONLY, QUOTAS
    ).says("The length of each such window."),
    Setting(
        "alter.log.dirs.replication.quota.window.num", INT, 11, AT_LEAST_1, LOW, READ_ONLY, QUOTAS
    ).says("How many windows the rate of moves between directories is measured over."),
    Setting(
        "alter.log.dirs.replication.quota.window.size.seconds",
        INT,
        1,
        AT_LEAST_1,
        LOW,
        READ_ONLY,
        QUOTAS,
    ).says("The length of each such window."),
    Setting(
        "leader.replication.throttled.rate", LONG, NEVER, AT_LEAST_0, MEDIUM, CLUSTER_WIDE, QUOTAS
    ).says("The most bytes a second that a leader sends to throttled followers."),
    Setting(
        "follower.replication.throttled.rate", LONG, NEVER, AT_LEAST_0, MEDIUM, CLUSTER_WIDE, QUOTAS
    ).says("The most bytes a second that throttled followers read."),
    Setting(
        "replica.alter.log.dirs.io.max.bytes.per.second",
        LONG,
        NEVER,
        AT_LEAST_0,
        MEDIUM,
        CLUSTER_WIDE,
        USED,
    ).says("The most bytes a second that are moved between directories."),
)
