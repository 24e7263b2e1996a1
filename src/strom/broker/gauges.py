"""What is asked for when somebody reads the metrics: of partitions, directories, the cluster.

Nothing here is counted while the broker works; a look goes through all partitions, which is a few
milliseconds for ten thousand of them. The names are those that the JMX exporter gives to Kafka's.
"""

from collections import Counter
from collections.abc import Callable, Iterator

from strom.broker.context import Parts
from strom.broker.server import Server
from strom.metadata import image as cluster
from strom.replication.partition import Partition

REPLICAS = "kafka_server_replicamanager_"
CONTROLLER = "kafka_controller_kafkacontroller_"
BY_TOPIC = "kafka_server_brokertopicmetrics_"
NO_LEADER = -1

#: A gauge's name, what it is, and what reads it.
Asked = tuple[str, str, Callable[[], float]]


def add_gauges(parts: Parts, server: Server) -> None:
    """Have all of it shown."""
    metrics, replicas = parts.metrics, parts.replicas
    for name, help_text, read in (*of_partitions(parts), *of_cluster(parts)):
        metrics.add_gauge(name, help_text, read)
    metrics.add_gauge(
        "kafka_server_socketservermetrics_connection_count",
        "Open connections.",
        lambda: len(server.connections),
    )
    metrics.add_gauge(
        "strom_loop_longest_stall_seconds",
        "The longest time that the event loop was kept from its work.",
        lambda: metrics.longest_stall_ms / 1000,
    )
    metrics.add_topics(
        BY_TOPIC + "bytesin",
        lambda: by_topic(replicas.partitions(), lambda each: each.appended_bytes),
    )
    metrics.add_topics(
        BY_TOPIC + "messagesin",
        lambda: by_topic(replicas.partitions(), lambda each: each.appended_records),
    )
    metrics.add_source(parts.telemetry.collect)


def of_partitions(parts: Parts) -> list[Asked]:
    """Return what is asked of the partitions and directories here."""
    replicas = parts.replicas
    return [
        (
            REPLICAS + "partitioncount",
            "Partitions on this broker.",
            lambda: sum(1 for _ in replicas.partitions()),
        ),
        (
            REPLICAS + "leadercount",
            "Partitions that this broker leads.",
            lambda: sum(1 for each in replicas.partitions() if each.is_leader),
        ),
        (
            REPLICAS + "underreplicatedpartitions",
            "Partitions led here of which a replica is not in sync.",
            lambda: sum(len(state.isr) < len(state.replicas) for _, state in led(parts)),
        ),
        (
            REPLICAS + "underminisrpartitioncount",
            "Partitions led here with fewer in-sync replicas than min.insync.replicas.",
            lambda: sum(len(state.isr) < each.in_sync_min for each, state in led(parts)),
        ),
        (
            "kafka_log_logmanager_offlinelogdirectorycount",
            "Log directories that failed.",
            lambda: len(replicas.directories) - len(replicas.online_directories),
        ),
    ]


def of_cluster(parts: Parts) -> list[Asked]:
    """Return what is asked of the cluster as a whole."""
    return [
        (
            CONTROLLER + "activecontrollercount",
            "1 where the quorum's leader is.",
            lambda: int(parts.quorum.leader_id == parts.node_id),
        ),
        (
            CONTROLLER + "offlinepartitionscount",
            "Partitions of the cluster that nobody leads.",
            lambda: sum(state.leader == NO_LEADER for state in partitions_of(parts.image)),
        ),
        (
            CONTROLLER + "globaltopiccount",
            "Topics of the cluster.",
            lambda: len(parts.image.topics_by_name),
        ),
        (
            CONTROLLER + "globalpartitioncount",
            "Partitions of the cluster.",
            lambda: sum(1 for _ in partitions_of(parts.image)),
        ),
    ]


def led(parts: Parts) -> Iterator[tuple[Partition, cluster.Partition]]:
    """Yield what this broker leads, each with what the metadata says of it."""
    for each in parts.replicas.partitions():
        state = parts.image.partition(each.topic, each.index) if each.is_leader else None
        if state is not None:
            yield each, state


def partitions_of(image: cluster.Image) -> Iterator[cluster.Partition]:
    """Yield every partition of the cluster."""
    for topic in image.topics_by_name.values():
        yield from topic.partitions.values()


def by_topic(partitions: Iterator[Partition], count_of: Callable[[Partition], int]) -> Counter[str]:
    """Return the sums over the partitions of each topic that something was written to."""
    counts: Counter[str] = Counter()
    for each in partitions:
        if count := count_of(each):
            counts[each.topic] += count
    return counts
