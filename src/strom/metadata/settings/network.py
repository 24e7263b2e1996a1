"""Broker settings of listeners, connections, requests, and topics made without details."""

from typing import Final

from strom.metadata.settings.checks import (
    ANY_LIST,
    AT_LEAST_0,
    AT_LEAST_1,
    FILLED_LIST,
    OneOf,
    Range,
)
from strom.metadata.settings.definition import (
    BOOLEAN,
    CLASS,
    CLUSTER_WIDE,
    HIGH,
    INT,
    INT_MAX,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    PER_BROKER,
    READ_ONLY,
    STRING,
    USED,
    Setting,
)
from strom.metadata.settings.reasons import (
    EARLY,
    FINAL_ONLY,
    NO_PURGATORY,
    ONE_LOOP,
    ONE_NODE,
    PEERS,
    PLUGIN,
)

SETTINGS: Final = (
    Setting("listeners", LIST, ("PLAINTEXT://:9092",), FILLED_LIST, HIGH, PER_BROKER, USED).says(
        "The addresses to listen on, as NAME://host:port; no host means all, a host's name all of "
        "its addresses, port 0 a free one."
    ),
    Setting("advertised.listeners", LIST, None, FILLED_LIST, HIGH, READ_ONLY, USED).says(
        "The addresses that clients are told to use, if they differ from listeners."
    ),
    Setting(
        "listener.security.protocol.map",
        STRING,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        None,
        LOW,
        PER_BROKER,
        USED,
    ).says("Which security protocol each listener name stands for."),
    Setting("inter.broker.listener.name", STRING, None, None, MEDIUM, READ_ONLY, ONE_NODE).says(
        "The listener over which brokers talk to each other."
    ),
    Setting(
        "security.inter.broker.protocol",
        STRING,
        "PLAINTEXT",
        OneOf(("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")),
        MEDIUM,
        READ_ONLY,
        ONE_NODE,
    ).says("The protocol between brokers, when inter.broker.listener.name is not given."),
    Setting("early.start.listeners", LIST, None, ANY_LIST, HIGH, READ_ONLY, EARLY).says(
        "Listeners that open before the broker is ready to authorise."
    ),
    Setting("num.network.threads", INT, 3, AT_LEAST_1, HIGH, CLUSTER_WIDE, ONE_LOOP).says(
        "Threads that receive requests and send answers."
    ),
    Setting("num.io.threads", INT, 8, AT_LEAST_1, HIGH, CLUSTER_WIDE, ONE_LOOP).says(
        "Threads that work on requests."
    ),
    Setting("background.threads", INT, 10, AT_LEAST_1, HIGH, CLUSTER_WIDE, ONE_LOOP).says(
        "Threads for work in the background."
    ),
    Setting("queued.max.requests", INT, 500, AT_LEAST_1, HIGH, READ_ONLY, ONE_LOOP).says(
        "How many requests may wait before no more are read from the network."
    ),
    Setting("queued.max.request.bytes", LONG, -1, None, MEDIUM, READ_ONLY, USED).says(
        "How many bytes of requests may wait before no more are read; -1 sets no limit."
    ),
    Setting("request.timeout.ms", INT, 30_000, None, HIGH, READ_ONLY, PEERS).says(
        "How long a client of this broker waits for an answer before it tries again."
    ),
    Setting(
        "socket.connection.setup.timeout.ms", LONG, 10_000, None, MEDIUM, READ_ONLY, PEERS
    ).says("How long to wait for a connection to another node to come up."),
    Setting(
        "socket.connection.setup.timeout.max.ms", LONG, 30_000, None, MEDIUM, READ_ONLY, PEERS
    ).says("The longest that this wait grows to when connections keep failing."),
    Setting("socket.send.buffer.bytes", INT, 102_400, None, HIGH, READ_ONLY, USED).says(
        "The send buffer of each socket; -1 leaves the operating system's, which grows with what "
        "is sent. So it is, too, where this is not given."
    ),
    Setting("socket.receive.buffer.bytes", INT, 102_400, None, HIGH, READ_ONLY, USED).says(
        "The receive buffer of each socket; -1 leaves the operating system's, which grows with "
        "what comes. So it is, too, where this is not given."
    ),
    Setting("socket.request.max.bytes", INT, 104_857_600, AT_LEAST_1, HIGH, READ_ONLY, USED).says(
        "The largest request that is read; a longer one closes the connection."
    ),
    Setting("socket.listen.backlog.size", INT, 50, AT_LEAST_1, MEDIUM, READ_ONLY, USED).says(
        "How many connections may wait to be accepted."
    ),
    Setting("max.connections", INT, INT_MAX, AT_LEAST_0, MEDIUM, CLUSTER_WIDE, USED).says(
        "How many connections the broker holds at once."
    ),
    Setting("max.connections.per.ip", INT, INT_MAX, AT_LEAST_0, MEDIUM, CLUSTER_WIDE, USED).says(
        "How many connections one address may hold at once."
    ),
    Setting("max.connections.per.ip.overrides", STRING, "", None, MEDIUM, CLUSTER_WIDE, USED).says(
        "Other limits for some hosts, names or addresses, as host:count, separated by commas."
    ),
    Setting(
        "max.connection.creation.rate", INT, INT_MAX, AT_LEAST_0, MEDIUM, CLUSTER_WIDE, USED
    ).says("How many connections a second are accepted; who comes too soon waits."),
    Setting("connections.max.idle.ms", LONG, 600_000, None, MEDIUM, READ_ONLY, USED).says(
        "How long a connection may be silent before it is closed."
    ),
    Setting(
        "max.request.partition.size.limit", INT, 2000, AT_LEAST_1, MEDIUM, READ_ONLY, USED
    ).says("How many partitions one answer that pages may list."),
    Setting(
        "max.incremental.fetch.session.cache.slots", INT, 1000, AT_LEAST_0, MEDIUM, READ_ONLY, USED
    ).says("How many incremental fetch sessions are remembered."),
    Setting("fetch.max.bytes", INT, 57_671_680, Range(1024), MEDIUM, READ_ONLY, USED).says(
        "The most bytes that one fetch answer holds, whatever the client asks for."
    ),
    Setting(
        "fetch.purgatory.purge.interval.requests", INT, 1000, None, MEDIUM, READ_ONLY, NO_PURGATORY
    ).says("How many waiting fetches pass between two purges."),
    Setting(
        "producer.purgatory.purge.interval.requests",
        INT,
        1000,
        None,
        MEDIUM,
        READ_ONLY,
        NO_PURGATORY,
    ).says("How many waiting produce requests pass between two purges."),
    Setting(
        "delete.records.purgatory.purge.interval.requests",
        INT,
        1,
        None,
        MEDIUM,
        READ_ONLY,
        NO_PURGATORY,
    ).says("How many waiting record deletions pass between two purges."),
    Setting("auto.create.topics.enable", BOOLEAN, True, None, HIGH, READ_ONLY, USED).says(
        "Whether asking for an unknown topic creates it."
    ),
    Setting("delete.topic.enable", BOOLEAN, True, None, HIGH, READ_ONLY, USED).says(
        "Whether topics may be deleted."
    ),
    Setting("num.partitions", INT, 1, AT_LEAST_1, MEDIUM, READ_ONLY, USED).says(
        "How many partitions a topic gets when its creator does not say."
    ),
    Setting("create.topic.policy.class.name", CLASS, None, None, LOW, READ_ONLY, PLUGIN).says(
        "A class that may refuse new topics."
    ),
    Setting("alter.config.policy.class.name", CLASS, None, None, LOW, READ_ONLY, PLUGIN).says(
        "A class that may refuse changes of settings."
    ),
    Setting("unstable.api.versions.enable", BOOLEAN, False, None, HIGH, READ_ONLY, FINAL_ONLY).says(
        "Whether versions of requests that are not final are offered."
    ),
)
