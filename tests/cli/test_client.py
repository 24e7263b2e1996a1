import socket
import struct
from concurrent.futures import ThreadPoolExecutor

import pytest
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v6.response import FindCoordinatorResponse

from strom.cli.client import address, properties, split_address, unknown_topic
from strom.cli.failure import Failure
from strom.cli.options import ClientOptions
from strom.cli.plain import ask


@pytest.fixture
def closed_port():
    """A port that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def test_the_command_line_goes_before_the_file(tmp_path):
    """CON-15: colon and equals sign both separate; Java's names are understood."""
    file = tmp_path / "consumer.properties"
    file.write_text("# a comment\nfetch.min.bytes: 1000000\nfetch.max.wait.ms=500\nacks=1\n")
    options = ClientOptions(client_config=["acks=all"], client_config_file=str(file))
    assert properties(options) == {
        "bootstrap.servers": "127.0.0.1:9092",
        "fetch.min.bytes": "1000000",
        "fetch.wait.max.ms": "500",
        "acks": "all",
    }


def test_a_property_needs_a_value():
    with pytest.raises(Failure, match="KEY=VALUE"):
        properties(ClientOptions(client_config=["acks"]))


def test_a_file_that_is_no_text_is_named(strom, tmp_path):
    file = tmp_path / "client.properties"
    file.write_bytes(b"\xff\xfe")
    result = strom("topic", "list", "--client-config-file", str(file))
    assert result.exit_code == 1
    assert result.stderr == f"strom: cannot read {file}: it is not UTF-8 text\n"


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost:9093", ("localhost", 9093)),
        ("localhost", ("localhost", 9092)),
        ("[::1]:9093", ("::1", 9093)),
        ("[::1]", ("::1", 9092)),
        ("PLAINTEXT://host:1", ("host", 1)),
    ],
)
def test_addresses_are_read(text, address):
    assert split_address(text) == address


@pytest.mark.parametrize("port", ["kafka", "65536", ""])
def test_a_port_is_a_number(port):
    with pytest.raises(Failure, match="is no address"):
        split_address(f"host:{port}")


def test_the_second_address_may_be_the_one_that_answers(closed_port):
    """TOP-19."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        named = ClientOptions(bootstrap_server=f"127.0.0.1:{closed_port}, 127.0.0.1:{port}")
        assert address(named) == ("127.0.0.1", port)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\0\0",
        b"\x15\x03\x03\0\x02\x02\x46",  # what a TLS port says to who does not speak TLS
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        struct.pack(">i", -1),
        struct.pack(">i", 8) + b"\xff" * 8,
    ],
)
def test_who_is_no_plain_broker_is_told_in_one_line(answer):
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as beside:

        def answer_once():
            link, _ = server.accept()
            with link:
                link.recv(1 << 16)
                link.sendall(answer)
                link.shutdown(socket.SHUT_WR)

        answered = beside.submit(answer_once)
        asked = FindCoordinatorRequest(key_type=0, coordinator_keys=("g",))
        with pytest.raises(Failure, match="is that a Kafka port, and a plain one"):
            ask(server.getsockname()[:2], asked, FindCoordinatorResponse)
        answered.result()


def test_nobody_there_is_one_line_that_says_what_to_do(strom, closed_port):
    result = strom("topic", "list", "-b", f"127.0.0.1:{closed_port}")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert "Connection refused" in result.stderr
    assert "strom up" in result.stderr


def test_the_nearest_name_is_offered():
    known = ["flugdaten", "sensordaten"]
    assert str(unknown_topic("flugdatn", known)) == (
        "Topic 'flugdatn' does not exist as expected (did you mean 'flugdaten'?)"
    )
    assert str(unknown_topic("xyz", known)) == "Topic 'xyz' does not exist as expected"
