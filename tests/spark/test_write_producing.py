"""Batches arrive once, in order, whatever happens between the producer and the broker."""

import contextlib
import socket
import threading

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from strom.records.compression import Codec
from strom.records.record import Record, write_records
from strom.spark.asking import Coordinator, Role
from strom.spark.cluster import Cluster
from strom.spark.exactly_once import OFFSET_FETCH, new_identity
from strom.spark.failure import UnreachableError
from strom.spark.given import parse_servers
from strom.spark.options import Connection
from strom.spark.producing import Producer, WriteError
from strom.spark.write_options import Delivery
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.slow

HEADER_ROOM = bytes(61)
NOW_MS = 1_700_000_000_000


class Proxy:
    """Stands between clients and a broker, and cuts connections where it is told to."""

    def __init__(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.target = None
        self._cuts = []
        self._answers = 0
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listener.close()

    def cut(self, *counts):
        """Let so many answers through, swallow one, end its connection; then the next count.

        The requests have reached the broker by then.
        """
        with self._lock:
            self._answers, self._cuts = 0, list(counts)

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self.target)
            threading.Thread(target=self._requests, args=(client, server), daemon=True).start()
            threading.Thread(target=self._answers_of, args=(client, server), daemon=True).start()

    def _requests(self, client, server):
        try:
            while data := client.recv(1 << 16):
                server.sendall(data)
        except OSError:
            pass
        finally:
            _end(server)

    def _answers_of(self, client, server):
        try:
            while (size := _exactly(server, 4)) is not None:
                answer = _exactly(server, int.from_bytes(size, "big"))
                if answer is None or self._swallows():
                    break
                client.sendall(size + answer)
        except OSError:
            pass
        finally:
            _end(client)

    def _swallows(self):
        with self._lock:
            self._answers += 1
            if self._cuts and self._answers > self._cuts[0]:
                self._answers = 0
                self._cuts.pop(0)
                return True
            return False


def _end(connection):
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


def _exactly(connection, size):
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            return None
        data += part
    return data


@pytest.fixture
def proxied(strom_brokers):
    """A broker that says to be where a proxy is."""
    proxy = Proxy()
    broker = strom_brokers({"advertised.listeners": f"PLAINTEXT://127.0.0.1:{proxy.port}"})
    (proxy.target,) = parse_servers(broker.bootstrap)
    yield broker, proxy
    proxy.close()


def create(bootstrap, topic, partitions=1, **config):
    admin = AdminClient({"bootstrap.servers": bootstrap})
    created = admin.create_topics([NewTopic(topic, partitions, 1, config=config)])
    created[topic].result(PATIENCE_SECONDS)


def connection_to(bootstrap, **settings):
    return Connection(bootstrap=parse_servers(bootstrap), **({"retry_backoff_ms": 10} | settings))


def producer_of(connection, **delivery):
    producer = Producer(Cluster(connection), Delivery(**delivery), new_identity(connection))
    producer.count_partitions("rides")
    return producer


def send(producer, *values, partition=0):
    records = [Record(at, 0, None, value) for at, value in enumerate(values)]
    packed = memoryview(bytearray(HEADER_ROOM) + write_records(records, 0, 0))
    producer.send(("rides", partition), packed, len(records), now_ms=NOW_MS)


def values_of(bootstrap, topic="rides", partition=0):
    """All values of a partition, as another client reads them."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "reader"}
    consumer = Consumer(settings | {"enable.partition.eof": "false"})
    try:
        place = TopicPartition(topic, partition, 0)
        _, end = consumer.get_watermark_offsets(place, PATIENCE_SECONDS)
        consumer.assign([place])
        found = []
        while len(found) < end:
            found += consumer.consume(end - len(found), PATIENCE_SECONDS)
        assert all(each.error() is None for each in found)
        return [each.value() for each in found]
    finally:
        consumer.close()


@pytest.mark.parametrize("codec", list(Codec))
def test_batches_of_every_codec_are_read_by_another_client(strom_broker, codec):
    """PRO-13, PRO-14."""
    create(strom_broker.bootstrap, "rides")
    producer = producer_of(connection_to(strom_broker.bootstrap), codec=codec)
    expected = [f"{at}".encode() * 100 for at in range(40)]
    for first in range(0, 40, 4):
        send(producer, *expected[first : first + 4])
    producer.flush()
    assert values_of(strom_broker.bootstrap) == expected


@pytest.mark.parametrize("answered", [0, 1, 2, 3, 7])
def test_an_answer_that_is_lost_loses_and_doubles_nothing(proxied, answered):
    """PRO-20, ACK-06: what was taken and not acknowledged is sent again and not written again."""
    broker, proxy = proxied
    create(broker.bootstrap, "rides", 2)
    producer = producer_of(connection_to(broker.bootstrap))
    send(producer, b"first")
    producer.flush()
    proxy.cut(answered, answered + 2, answered + 5)
    for at in range(12):
        send(producer, b"%d" % at, partition=at % 2)
    producer.flush()
    proxy.cut()
    assert values_of(broker.bootstrap) == [b"first", *(b"%d" % at for at in range(0, 12, 2))]
    assert values_of(broker.bootstrap, partition=1) == [b"%d" % at for at in range(1, 12, 2)]


def test_a_batch_that_is_too_large_for_its_topic_is_halved(strom_broker):
    create(strom_broker.bootstrap, "rides", **{"max.message.bytes": "700"})
    for codec in (Codec.NONE, Codec.LZ4):
        producer = producer_of(connection_to(strom_broker.bootstrap), codec=codec)
        for first in range(0, 60, 20):
            send(producer, *(b"%d" % at * 20 for at in range(first, first + 20)))
        send(producer, b"last")
        producer.flush()
    expected = [*(b"%d" % at * 20 for at in range(60)), b"last"]
    assert values_of(strom_broker.bootstrap) == expected * 2


def test_a_record_that_is_too_large_is_told(strom_broker):
    create(strom_broker.bootstrap, "rides", **{"max.message.bytes": "700"})
    producer = producer_of(connection_to(strom_broker.bootstrap))
    send(producer, b"x" * 1000)
    with pytest.raises(WriteError, match=r"MESSAGE_TOO_LARGE.*max\.message\.bytes"):
        producer.flush()


def test_a_topic_that_there_is_not_is_told(strom_broker):
    with pytest.raises(WriteError, match="no topic 'rides': create it"):
        producer_of(connection_to(strom_broker.bootstrap))


def test_a_broker_that_is_not_there_is_told(strom_broker):
    """PRO-11: tried for as long as it is allowed to, and no longer."""
    create(strom_broker.bootstrap, "rides")
    connection = connection_to(strom_broker.bootstrap, patience_ms=200)
    producer = producer_of(connection, timeout_ms=200)
    strom_broker.stop()
    with pytest.raises(UnreachableError, match="tried for 200 ms"):
        send(producer, b"x")
        producer.flush()
    producer.close()


def test_a_coordinator_is_found_and_told_when_it_is_not_there(strom_broker):
    connection = connection_to(strom_broker.bootstrap, patience_ms=200)
    strom_broker.stop()
    with pytest.raises(UnreachableError, match="tried for 200 ms"):
        Coordinator(connection, Role.GROUP, "g").ask(OFFSET_FETCH, None, lambda answer: answer)
