"""Listeners, the limits on who is let in and how much is asked, and the HTTP port.

Rows: BRK-06, BRK-09, BRK-14, BRK-22, BRK-23, MON-01.
"""

import re
import resource
import select
import socket
import threading
import urllib.error
import urllib.request
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Producer

from strom.broker.host import Host
from strom.testing.clock import FakeClock
from tests.conformance.batches import batch
from tests.conformance.raw import Raw
from tests.patience import PATIENCE_SECONDS, until

#: Longer than anybody waits for an answer.
FOR_EVER_MS = 600_000
#: How much more some time may cost with a thousand who wait: a few hundredths of a second, and far
#: fewer turns of the loop than there are of them.
WATCHED_MS, TICKS_MORE, WAKES_MORE = 2000, 5, 50
#: How many files a process may have open that does not ask for more, and how many one needs here.
USUAL_FILES, MANY_FILES = 1024, 4096
#: A thousand, and more than there are usual files.
POLLS = 1100


def brokers_told(bootstrap):
    with Raw(bootstrap) as raw:
        (broker,) = raw.ask("metadata", 12, {"topics": []})["brokers"]
    return broker


def is_served(raw):
    raw.send("metadata", 12, {"topics": []})
    return raw.read_frame() is not None


def port_of(broker, listener):
    return broker.broker.parts.endpoints[listener].port


def test_several_listeners_each_tell_their_own_address(strom_brokers):
    """BRK-22: the answer names the listener that was asked."""
    broker = strom_brokers(
        {
            "listeners": "PLAINTEXT://127.0.0.1:0,INNEN://127.0.0.1:0",
            "advertised.listeners": "PLAINTEXT://127.0.0.1:0,INNEN://localhost:0",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INNEN:PLAINTEXT",
        }
    )
    for name, host in (("PLAINTEXT", "127.0.0.1"), ("INNEN", "localhost")):
        port = port_of(broker, name)
        told = brokers_told(f"127.0.0.1:{port}")
        assert (told["host"], told["port"]) == (host, port)


def test_a_listener_of_the_controller_tells_of_the_controller(strom_brokers):
    """CLU-13, KIP-919: it is served, is where the record says, and is never told to clients."""
    broker = strom_brokers(
        {
            "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
            "controller.listener.names": "CONTROLLER",
        }
    )
    parts = broker.broker.parts
    port = parts.controller_endpoints["CONTROLLER"].port
    (registered,) = parts.image.controllers.values()
    assert [(each.host, each.port) for each in registered.end_points] == [("127.0.0.1", port)]
    with Raw(broker.bootstrap) as raw:
        raw.ask("metadata", 12, {"topics": [{"name": "t"}], "allow_auto_topic_creation": True})
        place = {"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}
        (node,) = raw.ask("describe_quorum", 2, {"topics": [place]})["nodes"]
        assert node["listeners"] == [{"name": "CONTROLLER", "host": "127.0.0.1", "port": port}]
        (told,) = raw.ask("describe_cluster", 2, {"endpoint_type": 1})["brokers"]
        assert told["port"] == port_of(broker, "PLAINTEXT")
        refused = raw.ask("describe_cluster", 2, {"endpoint_type": 2})
        assert refused["error_message"].startswith("The request was sent to an endpoint of type B")
    with Raw(f"127.0.0.1:{port}") as raw:
        answer = raw.ask("describe_cluster", 2, {"endpoint_type": 2})
        assert (answer["endpoint_type"], answer["controller_id"]) == (2, 1)
        (told,) = answer["brokers"]
        assert (told["broker_id"], told["host"], told["port"]) == (1, "127.0.0.1", port)
        refused = raw.ask("describe_cluster", 2, {"endpoint_type": 1})
        assert refused["error_message"].startswith("The request was sent to an endpoint of type C")
        answer = raw.ask("metadata", 12, {"topics": [{"name": "t"}]})
        ((partition,),) = (each["partitions"] for each in answer["topics"])
        assert answer["brokers"] == []
        assert (partition["error_code"], partition["leader_id"]) == ("listener_not_found", -1)


def test_a_listener_that_is_not_advertised_tells_of_no_broker(strom_brokers):
    """BRK-22: nobody is sent to an address that was not meant to be told."""
    broker = strom_brokers(
        {
            "listeners": "PLAINTEXT://127.0.0.1:0,INNEN://127.0.0.1:0",
            "advertised.listeners": "INNEN://127.0.0.1:0",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INNEN:PLAINTEXT",
        }
    )
    with Raw(broker.bootstrap) as raw:
        assert raw.ask("metadata", 12, {"topics": []})["brokers"] == []
        assert raw.ask("describe_cluster", 2, {"endpoint_type": 1})["controller_id"] == -1


def test_a_leader_is_not_told_by_a_listener_where_it_is_not_advertised(strom_brokers):
    """BRK-22: as Apache Kafka 4.3 answers; DescribeTopicPartitions knows no error for it."""
    broker = strom_brokers(
        {
            "listeners": "PLAINTEXT://127.0.0.1:0,INNEN://127.0.0.1:0",
            "advertised.listeners": "INNEN://127.0.0.1:0",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INNEN:PLAINTEXT",
        }
    )
    for address, error, leader, offline in (
        (f"127.0.0.1:{port_of(broker, 'INNEN')}", "none", 1, []),
        (broker.bootstrap, "listener_not_found", -1, [1]),
    ):
        with Raw(address) as raw:
            asked = {"topics": [{"name": "t"}], "allow_auto_topic_creation": True}
            (found,) = raw.ask("metadata", 12, asked)["topics"][0]["partitions"]
            assert (found["error_code"], found["leader_id"]) == (error, leader)
            assert found["offline_replicas"] == offline
            asked = {"topics": [{"name": "t"}], "response_partition_limit": 10, "cursor": None}
            answer = raw.ask("describe_topic_partitions", 0, asked)
            (found,) = answer["topics"][0]["partitions"]
            assert (found["error_code"], found["leader_id"]) == ("none", leader)
            assert (found["replica_nodes"], found["offline_replicas"]) == ([1], offline)


def test_a_listener_without_a_host_serves_both_families(strom_brokers):
    """BRK-06: each client is told an address that it can reach, of the family it came by."""
    broker = strom_brokers({"listeners": "PLAINTEXT://:0"})
    port = port_of(broker, "PLAINTEXT")
    for host in ("127.0.0.1", "::1") if socket.has_dualstack_ipv6() else ("127.0.0.1",):
        told = brokers_told(f"{host}:{port}")
        assert (told["host"], told["port"]) == (host, port)


def test_a_rack_is_told(strom_brokers):
    """BRK-23."""
    assert brokers_told(strom_brokers({"broker.rack": "halle-3"}).bootstrap)["rack"] == "halle-3"
    assert brokers_told(strom_brokers().bootstrap)["rack"] is None


def test_connections_from_one_address_are_limited(strom_brokers):
    """max.connections.per.ip: the surplus one is closed at once."""
    broker = strom_brokers({"max.connections.per.ip": "2"})
    with Raw(broker.bootstrap) as one, Raw(broker.bootstrap) as two:
        assert is_served(one)
        assert is_served(two)
        with Raw(broker.bootstrap) as three:
            assert three.closed()
        two.close()
        assert is_served(one)

        def is_served_again():
            with Raw(broker.bootstrap) as again:
                return is_served(again)

        # It takes the broker a moment to see that the second one is gone.
        until(is_served_again)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_an_address_may_have_a_limit_of_its_own(strom_brokers, host):
    """max.connections.per.ip.overrides."""
    limits = {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": f"{host}:1"}
    broker = strom_brokers(limits)
    with Raw(broker.bootstrap) as one, Raw(broker.bootstrap) as two:
        assert is_served(one)
        assert two.closed()


def test_connections_are_limited_altogether(strom_brokers):
    """max.connections: who comes too many waits until somebody leaves."""
    broker = strom_brokers({"max.connections": "1"})
    with Raw(broker.bootstrap) as one:
        assert is_served(one)
        with Raw(broker.bootstrap) as two:
            two.send("metadata", 12, {"topics": []})
            two.socket.settimeout(0.05)
            with pytest.raises(TimeoutError):
                two.socket.recv(1)
            assert is_served(one)
            one.close()
            two.socket.settimeout(PATIENCE_SECONDS)
            assert two.socket.recv(1)


def test_idle_connections_are_closed(strom_brokers):
    """connections.max.idle.ms: but not one that waits for an answer."""
    clock = FakeClock()
    broker = strom_brokers({"connections.max.idle.ms": "101"}, host=Host(now_ms=clock))
    with Raw(broker.bootstrap) as idle, Raw(broker.bootstrap) as waiting:
        new = {"name": "flugdaten", "num_partitions": 1, "replication_factor": 1}
        waiting.ask("create_topics", 7, {"topics": [new], "timeout": 5000})
        place = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}
        asked = {"topics": [{"topic": "flugdaten", "partitions": [place]}], "max_bytes": 1000}
        asked |= {"replica_id": -1, "max_wait": 1500, "min_bytes": 1}
        waiting.send("fetch", 12, asked)
        assert is_served(idle)
        clock.advance(102)
        assert idle.closed()
        assert waiting.receive("fetch", 12)


def test_a_request_over_the_limit_closes_its_connection(strom_brokers):
    """socket.request.max.bytes."""
    broker = strom_brokers({"socket.request.max.bytes": "1000"})
    with Raw(broker.bootstrap) as raw, Raw(broker.bootstrap) as other:
        assert is_served(raw)
        raw.send_bytes((1001).to_bytes(4, "big"))
        assert raw.closed()
        assert is_served(other)


class Cost(NamedTuple):
    """What a process has cost the machine: time on a processor, and how often it woke up."""

    ticks: int
    wakes: int

    @classmethod
    def of(cls, pid):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        status = Path(f"/proc/{pid}/status").read_text()
        (wakes,) = re.findall(r"^voluntary_ctxt_switches:\s+(\d+)", status, re.MULTILINE)
        return cls(int(fields[11]) + int(fields[12]), int(wakes))

    def since(self, before):
        return Cost(self.ticks - before.ticks, self.wakes - before.wakes)


@contextmanager
def open_files(soft):
    """Have so many open files at most, as long as nobody asks for more; so have new processes."""
    before, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (before, hard))


@pytest.fixture
def many_files():
    """Lets this process have some thousand connections."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY and hard < MANY_FILES:
        pytest.skip("too few open files are allowed here")
    with open_files(MANY_FILES):
        yield


@pytest.mark.usefixtures("many_files")
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc here")
def test_a_thousand_idle_long_polls_cost_nothing(broker_process):
    """BRK-09, BRK-14: who waits for data waits; nobody asks for them.

    The broker starts with as few open files as most systems grant at first, and asks for more.
    """
    with open_files(USUAL_FILES):
        process = broker_process()
    place = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}
    topics = [{"topic": "flugdaten", "partitions": [place]}]
    asked = {"replica_id": -1, "min_bytes": 1, "max_bytes": 1000, "topics": topics}
    with ExitStack() as open_ones:
        raw = open_ones.enter_context(Raw(process.bootstrap))
        new = {"name": "flugdaten", "num_partitions": 1, "replication_factor": 1}
        raw.ask("create_topics", 7, {"topics": [new], "timeout": 5000})

        def cost_of_a_while():
            before = Cost.of(process.pid)
            raw.ask("fetch", 12, asked | {"max_wait": WATCHED_MS})
            return Cost.of(process.pid).since(before)

        idle = cost_of_a_while()
        polls = []
        while len(polls) < POLLS:
            polls += [open_ones.enter_context(Raw(process.bootstrap)) for _ in range(20)]
            # Who comes while too many stand at the door is let in a second later.
            assert is_served(raw)
        waiting = raw.encode("fetch", 12, asked | {"max_wait": FOR_EVER_MS})
        for poll in polls:
            poll.send_bytes(waiting)
        # In the beginning they are taken in; then it costs what it did without them.
        ticks, wakes = idle.ticks + TICKS_MORE, idle.wakes + WAKES_MORE
        until(cost_of_a_while, lambda cost: cost.ticks <= ticks and cost.wakes <= wakes)
        # They all do wait.
        raw.ask("produce", 9, produce_of(1))
        for poll in polls:
            _, answer = poll.receive("fetch", 12)
            assert answer["responses"][0]["partitions"][0]["records"]


def produce_of(size):
    data = {"index": 0, "records": batch([b"x" * size])}
    topics = [{"name": "flugdaten", "partition_data": [data]}]
    return {"acks": -1, "timeout": 5000, "topic_data": topics}


def was_appended(raw):
    answer = raw.receive("produce", 9)[1]["responses"][0]["partition_responses"][0]
    return answer["error_code"] == "none"


def test_requests_being_received_share_their_memory(strom_brokers):
    """queued.max.request.bytes: who finds none waits, and is served when there is some."""
    broker = strom_brokers(
        {"queued.max.request.bytes": "300000", "socket.request.max.bytes": "300000"}
    )
    with Raw(broker.bootstrap) as one, Raw(broker.bootstrap) as two, Raw(broker.bootstrap) as three:
        new = {"name": "flugdaten", "num_partitions": 1, "replication_factor": 1}
        one.ask("create_topics", 7, {"topics": [new], "timeout": 5000})
        frames = [each.encode("produce", 9, produce_of(200_000)) for each in (one, two)]
        # The last byte is missing, so it keeps its memory. Who came later is served only after the
        # turn of the loop in which that was taken.
        one.send_bytes(frames[0][:-1])
        for _ in range(2):
            assert is_served(three), "who asks for little is served all the time"
        waiting = threading.Thread(target=two.send_bytes, args=(frames[1],))
        waiting.start()
        for _ in range(100):
            assert is_served(three), "who asks for little is served all the time"
        # Not by a time-out of the socket: it is being written to.
        answered, _, _ = select.select([two.socket], [], [], 0.2)
        assert not answered
        one.send_bytes(frames[0][-1:])
        assert was_appended(one)
        assert was_appended(two), "the first one keeps what it no longer needs"
        waiting.join()
        # Nobody waits for memory that is its own.
        larger = [three.encode("produce", 9, produce_of(n)) for n in (200_000, 250_000)]
        sending = threading.Thread(target=three.send_bytes, args=(b"".join(larger),))
        sending.start()
        assert [was_appended(three) for _ in larger] == [True, True]
        sending.join()


@pytest.fixture
def http(strom_brokers):
    """A broker with an HTTP port, and a function that gets a document from it."""
    broker = strom_brokers({"strom.http.port": "0"})

    def get(path, **options):
        url = f"http://127.0.0.1:{broker.broker.http_port}{path}"
        try:
            with urllib.request.urlopen(urllib.request.Request(url, **options)) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    return broker, get


def test_health_and_metrics_are_on_one_port(http):
    """MON-01: under the names that the JMX exporter gives them."""
    broker, get = http
    assert get("/healthz") == (200, "ok\n")
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce("flugdaten", b"Liftoff")
    assert producer.flush(PATIENCE_SECONDS) == 0
    status, page = get("/metrics")
    assert status == 200
    told = dict(line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))
    assert float(told["kafka_server_brokertopicmetrics_messagesin_total"]) == 1
    assert float(told["kafka_server_brokertopicmetrics_bytesin_total"]) == 68 + 7
    of_topic = 'kafka_server_brokertopicmetrics_bytesin_total{topic="flugdaten"}'
    assert float(told[of_topic]) == 68 + 7
    assert float(told["kafka_controller_kafkacontroller_activecontrollercount"]) == 1
    assert float(told["kafka_controller_kafkacontroller_offlinepartitionscount"]) == 0
    assert float(told["kafka_server_replicamanager_partitioncount"]) == 1
    assert float(told["kafka_server_replicamanager_leadercount"]) == 1
    assert float(told['kafka_network_requestmetrics_requests_total{request="Produce"}']) == 1
    assert float(told["strom_loop_longest_stall_seconds"]) >= 0


def test_other_questions_are_told_what_there_is(http):
    _, get = http
    assert get("/") == (404, "try /metrics or /healthz\n")
    assert get("/metrics", method="DELETE")[0] == 405
