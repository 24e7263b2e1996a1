"""Broker settings of replication and leadership."""

from typing import Final

from strom.metadata.settings.checks import AT_LEAST_0, AT_LEAST_1
from strom.metadata.settings.definition import (
    BOOLEAN,
    CLUSTER_WIDE,
    HIGH,
    INT,
    LONG,
    MEDIUM,
    READ_ONLY,
    STRING,
    USED,
    Setting,
)
from strom.metadata.settings.reasons import ONE_LOOP, ONE_NODE

SETTINGS: Final = (
    Setting("broker.rack", STRING, None, None, MEDIUM, READ_ONLY, USED).says(
        "Where this broker stands; replicas of a partition are spread over racks."
    ),
    Setting("default.replication.factor", INT, 1, None, MEDIUM, READ_ONLY, USED).says(
        "How many replicas a topic gets when its creator does not say."
    ),
    Setting("min.insync.replicas", INT, 1, AT_LEAST_1, HIGH, CLUSTER_WIDE, USED).says(
        "How many replicas must be in sync for acks=all to be accepted."
    ),
    Setting(
        "unclean.leader.election.enable", BOOLEAN, False, None, HIGH, CLUSTER_WIDE, ONE_NODE
    ).says(
        "Whether a replica that lags may lead when no other is left, at the cost of lost records."
    ),
    Setting(
        "unclean.leader.election.interval.ms",
        LONG,
        300_000,
        AT_LEAST_1,
        MEDIUM,
        READ_ONLY,
        ONE_NODE,
    ).says("How often partitions that need such an election are looked for."),
    Setting("auto.leader.rebalance.enable", BOOLEAN, True, None, HIGH, READ_ONLY, ONE_NODE).says(
        "Whether leadership returns to the preferred replica by itself."
    ),
    Setting(
        "leader.imbalance.check.interval.seconds", LONG, 300, AT_LEAST_1, HIGH, READ_ONLY, ONE_NODE
    ).says("How often the balance of leaders is checked."),
    Setting("controlled.shutdown.enable", BOOLEAN, True, None, MEDIUM, READ_ONLY, ONE_NODE).says(
        "Whether a stopping broker hands its leaderships over first."
    ),
    Setting("num.replica.fetchers", INT, 1, AT_LEAST_1, HIGH, CLUSTER_WIDE, ONE_NODE).says(
        "Fetchers for each other broker that this one copies from."
    ),
    Setting("replica.fetch.min.bytes", INT, 1, None, HIGH, READ_ONLY, ONE_NODE).says(
        "The least bytes that a follower waits for."
    ),
    Setting(
        "replica.fetch.max.bytes", INT, 1_048_576, AT_LEAST_0, MEDIUM, READ_ONLY, ONE_NODE
    ).says("The bytes that a follower asks for in each partition."),
    Setting(
        "replica.fetch.response.max.bytes", INT, 10_485_760, AT_LEAST_0, MEDIUM, READ_ONLY, ONE_NODE
    ).says("The bytes that a follower asks for in one answer."),
    Setting("replica.fetch.wait.max.ms", INT, 500, None, HIGH, READ_ONLY, ONE_NODE).says(
        "How long a follower's fetch waits for new records."
    ),
    Setting("replica.fetch.backoff.ms", INT, 1000, AT_LEAST_0, MEDIUM, READ_ONLY, ONE_NODE).says(
        "How long a follower rests after a failed fetch."
    ),
    Setting("replica.lag.time.max.ms", LONG, 30_000, None, HIGH, READ_ONLY, ONE_NODE).says(
        "How long a follower may lag before it leaves the in-sync set."
    ),
    Setting(
        "replica.high.watermark.checkpoint.interval.ms", LONG, 5000, None, HIGH, READ_ONLY, USED
    ).says("How often the high watermarks are written to their checkpoint file."),
    Setting("replica.socket.timeout.ms", INT, 30_000, None, HIGH, READ_ONLY, ONE_NODE).says(
        "How long a follower waits for an answer."
    ),
    Setting(
        "replica.socket.receive.buffer.bytes", INT, 65_536, None, HIGH, READ_ONLY, ONE_NODE
    ).says("The receive buffer of a follower's sockets."),
    Setting("replica.selector.class", STRING, None, None, MEDIUM, READ_ONLY, ONE_NODE).says(
        "The class that chooses the replica a consumer reads from."
    ),
    Setting("num.replica.alter.log.dirs.threads", INT, None, None, HIGH, READ_ONLY, ONE_LOOP).says(
        "Threads that move partitions between directories."
    ),
)
