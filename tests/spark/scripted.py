"""Brokers that a test gives the words to: two of them, one partition, and who leads it.

They speak what a reader and a writer need (ApiVersions, Metadata, ListOffsets, Fetch, Produce) over
real sockets. What each answers to a Fetch or a Produce is decided by the test, request by request.
"""

import socketserver
import struct
import threading
from contextlib import contextmanager
from datetime import timedelta
from io import BytesIO
from typing import NamedTuple
from uuid import UUID

from kio.schema.fetch.v13 import response as fetch
from kio.schema.list_offsets.v7 import response as list_offsets
from kio.schema.metadata.v12 import response as metadata
from kio.schema.produce.v11 import response as produce
from kio.serial import entity_writer
from kio.static.primitive import i32Timedelta

from strom.records.batch import read_header
from strom.records.record import Record, read_records, write_batch
from strom.wire.errors import ErrorCode
from strom.wire.messages import kafka_message

TOPIC, TOPIC_ID = "rides", UUID(int=7)
NO_TIME = i32Timedelta.parse(timedelta(0))
API_VERSIONS, PRODUCE, FETCH, LIST_OFFSETS, METADATA = 18, 0, 1, 2, 3
#: Each API with the versions that are understood.
KNOWN = (
    (API_VERSIONS, 0, 0),
    (PRODUCE, 3, 11),
    (FETCH, 4, 13),
    (LIST_OFFSETS, 1, 7),
    (METADATA, 0, 12),
)
NOBODY = -1


class Asked(NamedTuple):
    """A Fetch, as it came in."""

    broker: int
    offset: int
    request: object


class Sent(NamedTuple):
    """The batch of a Produce, as it came in."""

    broker: int
    sequence: int
    values: list


class Frame(NamedTuple):
    """A request whose body was not read yet."""

    key: int
    client_id: str
    body: bytes


class CutError(Exception):
    """The broker closes the connection in the middle of its answer."""


class Cluster:
    """A partition of so many records, one each batch, at two brokers."""

    def __init__(self, count):
        self.batches = [write_batch([Record(n, 0, None, b"%d" % n)]) for n in range(count)]
        #: Who leads, as each Metadata says it in turn; the last of them stays.
        self.leaders = [0]
        #: The offset that each ListOffsets finds in turn; the last of them stays.
        self.offsets = [0]
        self.asked = []
        self.sent = []
        #: The values that were written, in order.
        self.taken = []
        #: Who asked, with the key of what was asked.
        self.clients = set()
        self.addresses = []
        self._lock = threading.Lock()

    def answer_fetch(self, asked):
        """Return an error, or what is there; a test puts its own in place."""
        return self.records_from(asked.offset)

    def records_from(self, offset):
        """Return the batch at the offset, as a broker sends as much as is asked for."""
        return bytes(self.batches[offset]) if offset < len(self.batches) else b""

    def answer_produce(self, sent):
        """Return an error, or none; a test puts its own in place."""
        return self.take(sent)

    def take(self, sent):
        """Write the batch if it is the next of its only producer, as a leader does."""
        if sent.sequence < len(self.taken):
            return ErrorCode.DUPLICATE_SEQUENCE_NUMBER
        if sent.sequence > len(self.taken):
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        self.taken += sent.values
        return ErrorCode.NONE

    def respond(self, broker, frame):
        """Return the body of the answer to a request."""
        with self._lock:
            self.clients.add((frame.key, frame.client_id))
        if frame.key == API_VERSIONS:
            return struct.pack(">hi", 0, len(KNOWN)) + b"".join(
                struct.pack(">hhh", *each) for each in KNOWN
            )
        if frame.key == METADATA:
            return b"\0" + written(self._metadata())
        if frame.key == LIST_OFFSETS:
            return b"\0" + written(offsets_answer(self._next_of(self.offsets)))
        answer = self._fetch if frame.key == FETCH else self._produce
        return b"\0" + written(answer(broker, frame.body))

    def _fetch(self, broker, body):
        request = kafka_message("fetch", "request").read(13, body)
        asked = Asked(broker, request.topics[0].partitions[0].fetch_offset, request)
        with self._lock:
            self.asked.append(asked)
        return fetch_answer(self.answer_fetch(asked), len(self.batches))

    def _produce(self, broker, body):
        batch = (
            kafka_message("produce", "request")
            .read(11, body)
            .topic_data[0]
            .partition_data[0]
            .records
        )
        values = [each.value for each in read_records(batch)]
        with self._lock:
            self.sent.append(Sent(broker, read_header(batch).base_sequence, values))
            return produce_answer(self.answer_produce(self.sent[-1]))

    def _next_of(self, answers):
        with self._lock:
            return answers.pop(0) if len(answers) > 1 else answers[0]

    def _metadata(self):
        leader = self._next_of(self.leaders)
        brokers = tuple(
            metadata.MetadataResponseBroker(node_id=number, host=host, port=port)
            for number, (host, port) in enumerate(self.addresses)
        )
        code = ErrorCode.LEADER_NOT_AVAILABLE if leader == NOBODY else ErrorCode.NONE
        partition = metadata.MetadataResponsePartition(
            error_code=code, partition_index=0, leader_id=leader
        )
        topic = metadata.MetadataResponseTopic(
            error_code=ErrorCode.NONE, name=TOPIC, topic_id=TOPIC_ID, partitions=(partition,)
        )
        return metadata.MetadataResponse(
            throttle_time=NO_TIME, brokers=brokers, controller_id=0, topics=(topic,)
        )


def fetch_answer(given, end):
    """Return the answer with these records, or with this error."""
    is_error = isinstance(given, ErrorCode)
    partition = fetch.PartitionData(
        partition_index=0,
        error_code=given if is_error else ErrorCode.NONE,
        high_watermark=end,
        aborted_transactions=(),
        records=b"" if is_error else given,
    )
    topic = fetch.FetchableTopicResponse(topic_id=TOPIC_ID, partitions=(partition,))
    return fetch.FetchResponse(throttle_time=NO_TIME, error_code=ErrorCode.NONE, responses=(topic,))


def produce_answer(code):
    """Return the answer with this error, or with none."""
    partition = produce.PartitionProduceResponse(
        index=0, error_code=code, base_offset=0, record_errors=()
    )
    topic = produce.TopicProduceResponse(name=TOPIC, partition_responses=(partition,))
    return produce.ProduceResponse(responses=(topic,))


def offsets_answer(offset):
    """Return where in the partition it is that was asked for."""
    partition = list_offsets.ListOffsetsPartitionResponse(
        partition_index=0, error_code=ErrorCode.NONE, offset=offset
    )
    topic = list_offsets.ListOffsetsTopicResponse(name=TOPIC, partitions=(partition,))
    return list_offsets.ListOffsetsResponse(throttle_time=NO_TIME, topics=(topic,))


def written(answer):
    with BytesIO() as out:
        entity_writer(type(answer))(out, answer)
        return out.getvalue()


class _Connection(socketserver.StreamRequestHandler):
    """Answers requests in their order until the client is gone."""

    def handle(self):
        while size := self.rfile.read(4):
            frame = self.rfile.read(struct.unpack(">i", size)[0])
            key, _version, number, length = struct.unpack_from(">hhih", frame)
            client_id, rest = frame[10 : 10 + length].decode(), frame[10 + length :]
            # Behind the tags of a flexible header.
            request = Frame(key, client_id, rest if key == API_VERSIONS else rest[1:])
            try:
                answer = self.server.cluster.respond(self.server.number, request)
            except CutError:
                # Half an answer, and no more.
                self.wfile.write(struct.pack(">ii", 1000, number))
                return
            self.wfile.write(struct.pack(">ii", len(answer) + 4, number) + answer)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, cluster, number):
        super().__init__(("127.0.0.1", 0), _Connection)
        self.cluster = cluster
        self.number = number

    def handle_error(self, request, address):
        """A client that leaves is no error of ours."""


@contextmanager
def serving(cluster):
    """Serve the cluster's two brokers while the block runs."""
    servers = [_Server(cluster, number) for number in range(2)]
    cluster.addresses = [server.server_address for server in servers]
    threads = [
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        for server in servers
    ]
    for thread in threads:
        thread.start()
    try:
        yield cluster
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()
        for thread in threads:
            thread.join()
