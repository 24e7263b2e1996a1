"""What holds for every request: order, silence, refusals, and bytes that make no sense.

Rows: BRK-05, BRK-06; pitfalls "On the wire".
"""

import socket
import struct
import threading

import pytest

from tests.conformance.batches import batch
from tests.conformance.raw import Raw, decode, encode, framed

API_VERSIONS, PRODUCE, METADATA = 18, 0, 3
REQUEST_BYTES_MAX = 100 * 1024 * 1024


def produce_of(topic, records, acks=-1, index=0):
    data = {"index": index, "records": records}
    topics = [{"name": topic, "partition_data": [data]}]
    return {"acks": acks, "timeout": 10000, "topic_data": topics}


def header(key, version, correlation=7, client=b"raw"):
    return struct.pack(">hhih", key, version, correlation, len(client)) + client


@pytest.fixture
def healthy(strom):
    """Another connection, which must not notice what a test does to its own."""
    with Raw(strom.bootstrap) as other:
        other.ask("metadata", 9, {"topics": []})
        yield other
        other.ask("metadata", 9, {"topics": []})


def test_an_unknown_version_of_api_versions_is_answered_in_the_oldest_form(raw):
    raw.send_bytes(framed(header(API_VERSIONS, 99) + b"\0whatever"))
    correlation, answer = decode("api_versions", 0, raw.read_frame())
    assert correlation == 7
    assert answer["error_code"] == "unsupported_version"
    (told,) = (each for each in answer["api_keys"] if each["api_key"] == API_VERSIONS)
    assert (told["min_version"], told["max_version"]) == (0, 4)


@pytest.mark.parametrize("software", ["", "a b", "-x", "x-", "ä", "a/b", "x\n", "."])
def test_an_odd_software_name_is_refused_not_hung_up_on(raw, software):
    asked = {"client_software_name": software, "client_software_version": "1"}
    assert raw.ask("api_versions", 3, asked)["error_code"] == "invalid_request"
    asked = {"client_software_name": "ok", "client_software_version": software}
    assert raw.ask("api_versions", 3, asked)["error_code"] == "invalid_request"
    right = {"client_software_name": "a.b-c9", "client_software_version": "1.0-x"}
    assert raw.ask("api_versions", 3, right)["error_code"] == "none"


def test_no_acks_no_answer(raw, topic):
    """ACK-01."""
    raw.send("produce", 9, produce_of(topic, batch([b"silent"]), acks=0))
    sent = raw.send("metadata", 9, {"topics": []})
    correlation, _ = raw.receive("metadata", 9)
    assert correlation == sent
    asked = {"topics": [{"name": topic, "partitions": [{"timestamp": -1}]}]}
    assert raw.ask("list_offsets", 7, asked)["topics"][0]["partitions"][0]["offset"] == 1


def test_a_refused_batch_without_acks_closes_the_connection(raw, healthy, topic):
    raw.send("produce", 9, produce_of(topic, batch([b"x"], crc=1), acks=0))
    assert raw.closed()


def test_acks_that_do_not_exist_are_refused(raw, topic):
    answer = raw.ask("produce", 9, produce_of(topic, batch([b"x"]), acks=2))
    (partition,) = answer["responses"][0]["partition_responses"]
    assert partition["error_code"] == "invalid_required_acks"


def test_pipelined_requests_are_answered_in_order(raw, topic):
    """BRK-07."""
    sent, frames = [], []
    for n in range(60):
        name, version, values = [
            ("metadata", 12, {"topics": [{"name": topic}]}),
            ("produce", 9, produce_of(topic, batch([b"%d" % n]))),
            ("api_versions", 0, {}),
            ("list_offsets", 7, {"topics": [{"name": topic, "partitions": [{"timestamp": -1}]}]}),
        ][n % 4]
        frames.append(raw.encode(name, version, values))
        sent.append((raw.correlation, name, version))
    raw.send_bytes(b"".join(frames))
    offsets = []
    for expected, name, version in sent:
        correlation, answer = raw.receive(name, version)
        assert correlation == expected
        if name == "produce":
            offsets.append(answer["responses"][0]["partition_responses"][0]["base_offset"])
    assert offsets == list(range(15))


def test_a_request_may_come_byte_by_byte(raw, topic):
    frame = raw.encode("produce", 9, produce_of(topic, batch([b"drop", b"by", b"drop"])))
    for byte in frame:
        raw.send_bytes(bytes([byte]))
    _, answer = raw.receive("produce", 9)
    assert answer["responses"][0]["partition_responses"][0]["error_code"] == "none"


def test_half_a_request_leaves_nothing_behind(strom, raw, healthy, topic):
    with Raw(strom.bootstrap) as other:
        frame = other.encode("produce", 9, produce_of(topic, batch([b"half"])))
        other.send_bytes(frame[: len(frame) // 2])
    asked = {"topics": [{"name": topic, "partitions": [{"timestamp": -1}]}]}
    assert raw.ask("list_offsets", 7, asked)["topics"][0]["partitions"][0]["offset"] == 0


MALFORMED = {
    "an unknown key": framed(header(999, 0)),
    "a version from the future": framed(header(METADATA, 99)),
    "a version from the past": framed(header(PRODUCE, 2) + bytes(40)),
    "a negative length": struct.pack(">i", -5) + b"abcde",
    "a length over the limit": struct.pack(">i", REQUEST_BYTES_MAX + 1),
    "a length of zero": struct.pack(">i", 0),
    "a frame shorter than a header": framed(b"\0\x03"),
    "a body that ends too soon": framed(header(METADATA, 1) + struct.pack(">i", 3)),
    "an array that says it is huge": framed(header(METADATA, 1) + struct.pack(">i", 2**31 - 1)),
    "a string that is longer than its frame": framed(
        header(METADATA, 1) + struct.pack(">ih", 1, 3000)
    ),
    "a string that other versions have no room for": encode(
        "join_group", 9, {"group_id": "g", "group_instance_id": "i" * 2**15}
    ),
    "such a string in a rare request": encode("leave_group", 5, {"group_id": "g" * 2**15}),
    "a client id that is longer than its frame": framed(struct.pack(">hhih", 3, 1, 1, 30000)),
    "text of another protocol": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "the beginning of TLS": bytes.fromhex("16030100c8010000c40303") + bytes(200),
}


@pytest.mark.parametrize("frame", MALFORMED.values(), ids=MALFORMED.keys())
def test_nonsense_closes_its_own_connection_only(raw, healthy, frame):
    raw.send_bytes(frame)
    assert raw.closed()


def test_a_body_with_bytes_left_over_is_read(raw):
    """Apache Kafka reads what it knows and leaves the rest alone."""
    raw.send_bytes(framed(header(METADATA, 1) + struct.pack(">i", 0) + b"more"))
    assert raw.read_frame() is not None


def test_unknown_tagged_fields_are_read_past(raw):
    # Client id "t", then a tag (number 100, two bytes) in the header and one in the body.
    head = struct.pack(">hhih", API_VERSIONS, 3, 5, 1) + b"t" + b"\x01\x64\x02ab"
    body = b"\x04raw\x021" + b"\x01\x65\x01z"
    raw.send_bytes(framed(head + body))
    correlation, answer = decode("api_versions", 3, raw.read_frame())
    assert (correlation, answer["error_code"]) == (5, "none")


def test_a_client_without_a_name_is_served(strom):
    with Raw(strom.bootstrap, client_id=None) as raw:
        assert raw.ask("metadata", 12, {"topics": []})["brokers"]


def test_a_client_that_never_reads_holds_up_nobody(strom, healthy, topic):
    with Raw(strom.bootstrap) as deaf:
        deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        frame = deaf.encode("metadata", 12, {"topics": None})
        deaf.socket.settimeout(0.2)
        with pytest.raises(TimeoutError):
            for _ in range(200_000):
                deaf.send_bytes(frame)
        assert healthy.ask("metadata", 12, {"topics": [{"name": topic}]})["topics"]


def test_a_hundred_connections_at_once(strom, topic):
    connections = [Raw(strom.bootstrap) for _ in range(100)]
    try:
        for n, each in enumerate(connections):
            each.send("produce", 9, produce_of(topic, batch([b"from %d" % n])))
        offsets = [each.receive("produce", 9)[1] for each in reversed(connections)]
    finally:
        for each in connections:
            each.close()
    found = [each["responses"][0]["partition_responses"][0]["base_offset"] for each in offsets]
    assert sorted(found) == list(range(100))


def test_a_flood_of_pipelined_requests_is_served(raw, topic):
    """More than any limit of the broker on requests under way, in one piece."""
    count = 3000
    frames = [raw.encode("produce", 9, produce_of(topic, batch([b"x"]))) for _ in range(count)]
    first = raw.correlation - count + 1
    sender = threading.Thread(target=raw.send_bytes, args=(b"".join(frames),))
    sender.start()
    for n in range(count):
        correlation, answer = raw.receive("produce", 9)
        (partition,) = answer["responses"][0]["partition_responses"]
        assert (correlation, partition["base_offset"]) == (first + n, n)
    sender.join()
