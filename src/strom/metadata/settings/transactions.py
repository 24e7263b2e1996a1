"""Broker settings of transactions."""

from typing import Final

from strom.metadata.settings.checks import AT_LEAST_0, AT_LEAST_1
from strom.metadata.settings.definition import (
    BOOLEAN,
    CLUSTER_WIDE,
    HIGH,
    INT,
    LOW,
    READ_ONLY,
    SHORT,
    USED,
    Setting,
)
from strom.metadata.settings.reasons import TWO_PHASES

SETTINGS: Final = (
    Setting("transaction.max.timeout.ms", INT, 900_000, AT_LEAST_1, HIGH, READ_ONLY, USED).says(
        "The longest time-out that a producer may set for its transactions."
    ),
    Setting(
        "transactional.id.expiration.ms",
        INT,
        604_800_000,
        AT_LEAST_1,
        HIGH,
        READ_ONLY,
        USED,
    ).says("How long an unused transactional id is remembered."),
    Setting(
        "transaction.state.log.num.partitions", INT, 50, AT_LEAST_1, HIGH, READ_ONLY, USED
    ).says("How many partitions the transaction topic gets."),
    Setting(
        "transaction.state.log.replication.factor",
        SHORT,
        3,
        AT_LEAST_1,
        HIGH,
        READ_ONLY,
        USED,
    ).says("How many replicas the transaction topic gets."),
    Setting("transaction.state.log.min.isr", INT, 2, AT_LEAST_1, HIGH, READ_ONLY, USED).says(
        "How many replicas of the transaction topic must be in sync to write to it."
    ),
    Setting(
        "transaction.state.log.segment.bytes",
        INT,
        104_857_600,
        AT_LEAST_1,
        HIGH,
        READ_ONLY,
        USED,
    ).says("The segment size of the transaction topic."),
    Setting(
        "transaction.state.log.load.buffer.size",
        INT,
        5_242_880,
        AT_LEAST_1,
        HIGH,
        READ_ONLY,
        USED,
    ).says("How many bytes at a time are read when transactions are loaded."),
    Setting(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        INT,
        10_000,
        AT_LEAST_1,
        LOW,
        READ_ONLY,
        USED,
    ).says("How often transactions that outlived their time-out are aborted."),
    Setting(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        INT,
        3_600_000,
        AT_LEAST_1,
        LOW,
        READ_ONLY,
        USED,
    ).says("How often expired transactional ids are removed."),
    Setting(
        "transaction.partition.verification.enable", BOOLEAN, True, None, LOW, CLUSTER_WIDE, USED
    ).says("Whether a partition asks the coordinator if it belongs to the producer's transaction."),
    Setting(
        "transaction.two.phase.commit.enable", BOOLEAN, False, None, LOW, READ_ONLY, TWO_PHASES
    ).says("Whether a transaction may be prepared and committed by an outside coordinator."),
    Setting(
        "add.partitions.to.txn.retry.backoff.ms", INT, 20, AT_LEAST_1, HIGH, READ_ONLY, USED
    ).says("How long to rest before a partition is added to a transaction again."),
    Setting(
        "add.partitions.to.txn.retry.backoff.max.ms",
        INT,
        100,
        AT_LEAST_0,
        HIGH,
        READ_ONLY,
        USED,
    ).says("The longest time such attempts go on."),
)
