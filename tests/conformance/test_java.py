"""Apache Kafka's own tools, as its users call them. Each costs a second, so each does much.

Rows: TOP-01 to TOP-12, PRO-01, CON-01, DSK, MON.
"""

import json
import random
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests import nodes
from tests.conformance.clients import (
    CLIENTS,
    CODECS,
    AioKafka,
    Confluent,
    KafkaPython,
    Kcat,
    Sent,
    codecs_stored,
)

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def tool(strom, kafka_tool):
    """Runs a tool against the broker; its output. A failure shows both of its outputs."""

    def run(name, *arguments, text="", fails=False):
        done = kafka_tool(name, "--bootstrap-server", strom.bootstrap, *arguments, text=text)
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        return done.stdout + (done.stderr if fails else "")

    return run


def together(*calls):
    """Run calls side by side: what a tool does first is to wait for its JVM."""
    with ThreadPoolExecutor(2) as pool:
        return [future.result() for future in [pool.submit(*call) for call in calls]]


def test_kafka_topics(tool, name):
    topics = "kafka-topics", "--topic", name
    created = tool(*topics, "--create", "--partitions", 3, "--config", "retention.ms=4711")
    assert f"Created topic {name}." in created
    listed, described, again = together(
        (tool, "kafka-topics", "--list"),
        (tool, *topics, "--describe"),
        (lambda: tool(*topics, "--create", fails=True),),
    )
    assert name in listed.splitlines()
    assert "PartitionCount: 3" in described
    assert "ReplicationFactor: 1" in described
    assert "retention.ms=4711" in described
    assert re.search(r"Partition: 2\s+Leader: 1\s+Replicas: 1\s+Isr: 1", described)
    assert f"Topic '{name}' already exists." in again
    tool(*topics, "--alter", "--partitions", 5)
    fewer, described = together(
        (lambda: tool(*topics, "--alter", "--partitions", 4, fails=True),),
        (tool, *topics, "--describe"),
    )
    assert "would not be an increase" in fewer
    assert "PartitionCount: 5" in described
    tool(*topics, "--delete")
    gone = tool(*topics, "--describe", fails=True)
    assert "does not exist as expected" in gone


def shrinking(sender, codec):
    """A record that every codec makes smaller, so that no client sends it as it is."""
    return Sent(sender.encode(), f"{sender} {codec}{' again and again' * 60}".encode())


def send_by_java(tool, topic, codec):
    """Send a record with the console's producer."""
    properties = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
    sending = "kafka-console-producer", "--topic", topic, "--compression-codec", codec
    record = shrinking("java", codec)
    tool(*sending, *properties, text=f"{record.key.decode()}:{record.value.decode()}\n")


def test_java_and_every_other_client_read_each_other_in_every_codec(strom, tool, topic):
    """MSG-03, MSG-07."""
    clients = [each for each in CLIENTS if each is not Kcat or not nodes.kcat_missing()]
    for client in clients:
        for codec in CODECS:
            client.send(strom.bootstrap, topic, [shrinking(client.name, codec)], codec)
    together(*((send_by_java, tool, topic, codec) for codec in CODECS))
    names = [client.name for client in clients] + ["java"]
    sent = [shrinking(sender, codec)[:2] for sender in names for codec in CODECS]
    found = [each[:2] for each in Confluent.read(strom.bootstrap, topic, len(sent))]
    # Java's producers run side by side: which of them is first is nobody's affair.
    assert sorted(found) == sorted(sent)
    stored = codecs_stored(strom.bootstrap, topic)
    assert stored == [value.decode().split()[1] for _, value in found]
    for reader in clients:
        assert [each[:2] for each in reader.read(strom.bootstrap, topic, len(sent))] == found
    whole, part = together(
        (tool, *reading(topic, "earliest", len(sent)), "--formatter-property", "print.key=true"),
        (tool, *reading(topic, 7, 2), "--formatter-property", "print.offset=true"),
    )
    assert whole.splitlines() == [f"{key.decode()}\t{value.decode()}" for key, value in found]
    assert part.splitlines() == [f"Offset:{n}\t{found[n][1].decode()}" for n in (7, 8)]


def reading(topic, offset, count):
    """A console consumer without a group."""
    where = "--topic", topic, "--partition", 0, "--offset", offset
    return "kafka-console-consumer", *where, "--max-messages", count, "--timeout-ms", 60_000


def test_kafka_configs(tool, topic):
    on_topic = "kafka-configs", "--entity-type", "topics", "--entity-name", topic
    on_all = "kafka-configs", "--entity-type", "brokers", "--entity-default"
    done = tool(
        *on_topic, "--alter", "--add-config", "retention.ms=99,cleanup.policy=[compact,delete]"
    )
    assert f"Completed updating config for topic {topic}." in done
    told, bad, cluster, node = together(
        (tool, *on_topic, "--describe"),
        (lambda: tool(*on_topic, "--alter", "--add-config", "retention.ms=soon", fails=True),),
        (tool, *on_all, "--alter", "--add-config", "log.cleaner.threads=1"),
        (
            tool,
            "kafka-configs",
            "--entity-type",
            "brokers",
            "--entity-name",
            "1",
            "--describe",
            "--all",
        ),
    )
    assert "retention.ms=99 sensitive=false" in told
    assert "cleanup.policy=compact,delete" in told
    assert "Invalid value soon for configuration retention.ms: Not a number of type LONG" in bad
    assert "Completed updating default config for brokers" in cluster
    assert "log.segment.bytes=1073741824" in node
    tool(*on_all, "--alter", "--delete-config", "log.cleaner.threads")


def test_offsets_and_deletion_of_records(strom, tool, topic, tmp_path):
    Confluent.send(strom.bootstrap, topic, [Sent(None, b"%d" % n) for n in range(30)], "none")
    asked = {"partitions": [{"topic": topic, "partition": 0, "offset": 12}], "version": 1}
    (tmp_path / "cut.json").write_text(json.dumps(asked))
    cut = tool("kafka-delete-records", "--offset-json-file", tmp_path / "cut.json")
    assert f"partition: {topic}-0\tlow_watermark: 12" in cut
    latest, earliest = together(
        (tool, "kafka-get-offsets", "--topic", topic),
        (tool, "kafka-get-offsets", "--topic", topic, "--time", "earliest"),
    )
    assert latest.strip() == f"{topic}:0:30"
    assert earliest.strip() == f"{topic}:0:12"


def test_what_the_node_tells_about_itself(strom, tool):
    features, status, replication, cluster, versions, directories = together(
        (tool, "kafka-features", "describe"),
        (tool, "kafka-metadata-quorum", "describe", "--status"),
        (tool, "kafka-metadata-quorum", "describe", "--replication"),
        (nodes.kafka_tool, "kafka-cluster", "cluster-id", "--bootstrap-server", strom.bootstrap),
        (tool, "kafka-broker-api-versions"),
        (tool, "kafka-log-dirs", "--describe"),
    )
    assert re.search(r"Feature: metadata\.version\s.*FinalizedVersionLevel: 4\.3", features)
    assert re.search(r"LeaderId:\s+1\b", status)
    assert re.search(r"MaxFollowerLag:\s+0\b", status)
    assert re.search(r"^1\s.*Leader", replication, re.MULTILINE)
    assert re.fullmatch(r"Cluster ID: \S{22}\s*", cluster.stdout)
    # BRK-19, but for what newer tools add to the line.
    assert re.search(
        rf"^{re.escape(strom.bootstrap)} \(id: 1 rack: null.*\) -> \($", versions, re.MULTILINE
    )
    assert "Produce(0): 0 to 13 [usable: 13]" in versions
    assert "Fetch(1): 4 to 18 [usable: 18]" in versions
    (line,) = (line for line in directories.splitlines() if line.startswith("{"))
    (broker,) = json.loads(line)["brokers"]
    assert broker["broker"] == 1
    assert all(each["error"] is None for each in broker["logDirs"])


def test_the_quorum_is_described_by_the_controllers_listener(strom_brokers, kafka_tool):
    """CLU-13, KIP-919: a tool that asks the controller and no broker."""
    broker = strom_brokers(
        {
            "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
            "controller.listener.names": "CONTROLLER",
        }
    )
    port = broker.broker.parts.controller_endpoints["CONTROLLER"].port
    controller = ("--bootstrap-controller", f"127.0.0.1:{port}")
    done = kafka_tool("kafka-metadata-quorum", *controller, "describe", "--status")
    assert re.search(r"LeaderId:\s+1\b", done.stdout), done.stdout + done.stderr


def test_the_producer_performance_tool(tool, topic):
    done = tool(
        "kafka-producer-perf-test",
        *("--topic", topic, "--num-records", 20000, "--record-size", 100, "--throughput", -1),
    )
    assert "20000 records sent" in done
    assert tool("kafka-get-offsets", "--topic", topic).strip() == f"{topic}:0:20000"


def test_the_dump_tool_reads_our_files(strom_only, make_topic, kafka_tool):
    """DSK-20: Segments with every codec, their indexes, and the log of the metadata."""
    topic = make_topic(segment_bytes=1048576, index_interval_bytes=1024)
    for codec in CODECS:
        dice = random.Random(codec)
        records = [Sent(b"k", dice.randbytes(500), (("h", b"v"),)) for _ in range(1500)]
        small = {"batch.num.messages": 50}
        Confluent.send(strom_only.bootstrap, topic, records, codec, **small)
    files = sorted((strom_only.directory / f"{topic}-0").iterdir())
    segments = [str(each) for each in files if each.suffix == ".log"]
    indexes = [str(each) for each in files if each.suffix in {".index", ".timeindex"}]
    assert len(segments) > 2
    metadata = strom_only.directory / "__cluster_metadata-0" / "00000000000000000000.log"
    dump = kafka_tool, "kafka-dump-log", "--files"
    data, sane, verified, cluster = together(
        (*dump, ",".join(segments), "--deep-iteration"),
        (*dump, ",".join(indexes), "--index-sanity-check"),
        (*dump, ",".join(indexes), "--verify-index-only"),
        (*dump, str(metadata), "--cluster-metadata-decoder"),
    )
    for done in (data, sane, verified, cluster):
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr
        assert not re.search(r"Found|mismatch|corrupt|Exception|out of order", done.stdout)
    assert data.stdout.count("isvalid: true") == data.stdout.count("baseOffset: ")
    assert len(re.findall(r"^\| offset: ", data.stdout, re.MULTILINE)) == 1500 * len(CODECS)
    # The index of the last segment may have no entry yet: its first batch needs none.
    assert sane.stdout.count("passed sanity check") >= len(indexes) - 1, sane.stdout
    assert '"type":"TOPIC_RECORD"' in cluster.stdout
    assert topic in cluster.stdout


def send_all(bootstrap, writer):
    """Records compressed by the client, and some for each codec that the broker compresses."""
    for codec in CODECS:
        Confluent.send(bootstrap, "clients", [shrinking(writer, codec)], codec)
        other = "gzip" if codec == "none" else "none"
        Confluent.send(bootstrap, f"brokers-{codec}", [shrinking(writer, codec)], other)


def check_all(bootstrap, readers, writers):
    """Everything is there, each record in a batch of its codec."""
    for reader in readers:
        found = reader.read(bootstrap, "clients", len(CODECS) * len(writers))
        sent = [shrinking(writer, codec) for writer in writers for codec in CODECS]
        assert [each[:2] for each in found] == [each[:2] for each in sent], reader.name
        for codec in CODECS:
            found = reader.read(bootstrap, f"brokers-{codec}", len(writers))
            sent = [shrinking(writer, codec) for writer in writers]
            assert [each[:2] for each in found] == [each[:2] for each in sent], reader.name
    assert codecs_stored(bootstrap, "clients") == list(CODECS) * len(writers)
    for codec in CODECS:
        assert codecs_stored(bootstrap, f"brokers-{codec}") == [codec] * len(writers)


def topic_of(codec):
    """A topic whose broker compresses."""
    config = {"compression.type": "uncompressed" if codec == "none" else codec}
    return NewTopic(f"brokers-{codec}", 1, 1, config=config)


def test_kafka_and_strom_read_what_the_other_wrote(kafka_tool, broker_process):
    """One directory, with Kafka, with Strom, and with Kafka again."""
    # Its group is one consumer: nobody else is waited for.
    alone = "group.initial.rebalance.delay.ms=0", "offsets.topic.num.partitions=1"
    peer = nodes.KafkaProcess(nodes.new_directory("kafka"), *alone).start()
    try:
        admin = AdminClient({"bootstrap.servers": peer.bootstrap})
        for future in admin.create_topics([topic_of(codec) for codec in CODECS]).values():
            future.result()
        send_all(peer.bootstrap, "kafka")
        check_all(peer.bootstrap, [Confluent], ["kafka"])
        peer.stop()
        process = broker_process(log_dirs=peer.directory)
        check_all(process.bootstrap, [Confluent, KafkaPython, AioKafka], ["kafka"])
        send_all(process.bootstrap, "strom")
        process.stop()
        peer.start()
        check_all(peer.bootstrap, [Confluent], ["kafka", "strom"])
        count = 2 * 2 * len(CODECS)
        where = "--include", "clients|brokers-.*", "--from-beginning", "--max-messages", count
        read = kafka_tool(
            "kafka-console-consumer",
            *("--bootstrap-server", peer.bootstrap, *where, "--timeout-ms", 60_000),
        )
        expected = [shrinking(writer, codec) for writer in ("kafka", "strom") for codec in CODECS]
        values = sorted(each.value.decode() for each in expected)
        assert sorted(read.stdout.splitlines()) == sorted(values * 2), read.stderr
    finally:
        peer.remove()
