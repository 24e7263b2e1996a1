"""Broker settings of the node itself, the metadata quorum and its log."""

from typing import Final

from strom.metadata.settings.checks import (
    ADDRESSES,
    AT_LEAST_0,
    AT_LEAST_1,
    FILLED_LIST,
    VOTERS,
    Listed,
    Range,
)
from strom.metadata.settings.definition import (
    BOOLEAN,
    HIGH,
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
from strom.metadata.settings.reasons import (
    INNER,
    NO_NOOP,
    NO_QUEUE,
    ONE_NODE,
    ONE_VOTER,
    PEERS,
    STARTUP,
)

SETTINGS: Final = (
    Setting("node.id", INT, 1, AT_LEAST_0, HIGH, READ_ONLY, USED).says(
        "The number of this node, unique in its cluster."
    ),
    Setting("broker.id", INT, -1, None, HIGH, READ_ONLY, USED).says("The old name of node.id."),
    Setting(
        "process.roles",
        LIST,
        ("broker", "controller"),
        Listed(("broker", "controller"), may_be_empty=False),
        HIGH,
        READ_ONLY,
        USED,
    ).says("What this node is: a broker, a controller, or both."),
    Setting("controller.listener.names", LIST, (), FILLED_LIST, HIGH, READ_ONLY, USED).says(
        "The names of the listeners that the controller serves."
    ),
    Setting("controller.quorum.voters", LIST, (), VOTERS, HIGH, READ_ONLY, ONE_VOTER).says(
        "The controllers that vote, as id@host:port, separated by commas."
    ),
    Setting(
        "controller.quorum.bootstrap.servers", LIST, (), ADDRESSES, HIGH, READ_ONLY, ONE_VOTER
    ).says("Addresses at which the controllers can be found."),
    Setting(
        "controller.quorum.auto.join.enable", BOOLEAN, False, None, LOW, READ_ONLY, ONE_VOTER
    ).says("Whether a new controller becomes a voter by itself."),
    Setting(
        "controller.quorum.election.timeout.ms", INT, 1000, AT_LEAST_0, HIGH, READ_ONLY, ONE_VOTER
    ).says("How long a voter waits for a leader before it calls an election."),
    Setting(
        "controller.quorum.election.backoff.max.ms",
        INT,
        1000,
        AT_LEAST_0,
        HIGH,
        READ_ONLY,
        ONE_VOTER,
    ).says("The longest rest before another election is tried."),
    Setting(
        "controller.quorum.fetch.timeout.ms", INT, 2000, AT_LEAST_0, HIGH, READ_ONLY, ONE_VOTER
    ).says("How long a voter may not hear from the leader before it stands for election."),
    Setting(
        "controller.quorum.fetch.max.bytes", INT, 1_048_576, AT_LEAST_1, LOW, READ_ONLY, ONE_VOTER
    ).says("The most bytes that a fetch of the metadata log brings."),
    Setting(
        "controller.quorum.fetch.snapshot.max.bytes",
        INT,
        1_048_576,
        AT_LEAST_1,
        LOW,
        READ_ONLY,
        ONE_VOTER,
    ).says("The most bytes that a fetch of a metadata snapshot brings."),
    Setting(
        "controller.quorum.request.timeout.ms", INT, 2000, AT_LEAST_0, MEDIUM, READ_ONLY, ONE_VOTER
    ).says("How long a quorum request waits for its answer."),
    Setting(
        "controller.quorum.retry.backoff.ms", INT, 20, AT_LEAST_0, LOW, READ_ONLY, ONE_VOTER
    ).says("How long to rest before a quorum request is sent again."),
    Setting(
        "controller.quorum.append.linger.ms", INT, 25, AT_LEAST_0, MEDIUM, READ_ONLY, ONE_VOTER
    ).says("How long the controller collects records before it writes them."),
    Setting("controller.socket.timeout.ms", INT, 30_000, None, MEDIUM, READ_ONLY, PEERS).says(
        "How long the controller waits for an answer of a broker."
    ),
    Setting(
        "controller.performance.sample.period.ms",
        LONG,
        60_000,
        Range(100),
        MEDIUM,
        READ_ONLY,
        NO_QUEUE,
    ).says("How often the controller's timings are summed up in the log."),
    Setting(
        "controller.performance.always.log.threshold.ms",
        LONG,
        2000,
        AT_LEAST_0,
        MEDIUM,
        READ_ONLY,
        NO_QUEUE,
    ).says("How slow a controller event must be to be logged on its own."),
    Setting("broker.heartbeat.interval.ms", INT, 2000, None, MEDIUM, READ_ONLY, ONE_NODE).says(
        "How often a broker tells the controller that it is alive."
    ),
    Setting("broker.session.timeout.ms", INT, 9000, None, MEDIUM, READ_ONLY, ONE_NODE).says(
        "How long the controller waits for a heartbeat before it fences a broker."
    ),
    Setting(
        "initial.broker.registration.timeout.ms", INT, 60_000, None, MEDIUM, READ_ONLY, ONE_NODE
    ).says("How long a starting broker tries to register."),
    Setting("metadata.log.dir", STRING, None, None, HIGH, READ_ONLY, USED).says(
        "The directory of the metadata log, if it is not the first of log.dirs."
    ),
    Setting(
        "metadata.log.segment.bytes", INT, 1_073_741_824, Range(8_388_608), HIGH, READ_ONLY, USED
    ).says("The size at which a segment of the metadata log is closed."),
    Setting("metadata.log.segment.ms", LONG, 604_800_000, None, HIGH, READ_ONLY, USED).says(
        "The age at which a segment of the metadata log is closed."
    ),
    Setting(
        "metadata.log.max.record.bytes.between.snapshots",
        LONG,
        20_971_520,
        AT_LEAST_1,
        HIGH,
        READ_ONLY,
        USED,
    ).says("How many bytes of metadata records lead to a new snapshot."),
    Setting(
        "metadata.log.max.snapshot.interval.ms", LONG, 3_600_000, AT_LEAST_0, HIGH, READ_ONLY, USED
    ).says("The longest time between two snapshots while there are new records; 0 sets none."),
    Setting("metadata.max.retention.bytes", LONG, 104_857_600, None, HIGH, READ_ONLY, USED).says(
        "The size of metadata log and snapshots above which the oldest are deleted."
    ),
    Setting("metadata.max.retention.ms", LONG, 604_800_000, None, HIGH, READ_ONLY, USED).says(
        "The age at which old metadata segments and snapshots are deleted."
    ),
    Setting("metadata.max.idle.interval.ms", INT, 500, AT_LEAST_0, LOW, READ_ONLY, NO_NOOP).says(
        "How often the controller writes a no-op record when nothing happens."
    ),
    Setting("internal.metadata.log.segment.bytes", INT, None, None, LOW, READ_ONLY, INNER).says(
        "A segment size of the metadata log below the usual minimum, for tests."
    ),
    Setting(
        "internal.metadata.max.batch.size.in.bytes", INT, 8_388_608, None, LOW, READ_ONLY, INNER
    ).says("The largest batch of metadata records."),
    Setting(
        "internal.metadata.delete.delay.millis", LONG, 60_000, None, LOW, READ_ONLY, INNER
    ).says("How long deleted metadata files stay on disk."),
    Setting("server.max.startup.time.ms", LONG, NEVER, AT_LEAST_0, MEDIUM, READ_ONLY, STARTUP).says(
        "How long a start may take before it is given up."
    ),
    Setting("unstable.feature.versions.enable", BOOLEAN, False, None, HIGH, READ_ONLY, INNER).says(
        "Whether feature levels that are not final may be used."
    ),
)
