import logging
import socket
import struct
from concurrent.futures import ThreadPoolExecutor

import pytest

from strom.cli.client import (
    REPEAT_SECONDS,
    Repeats,
    address,
    properties,
    split_address,
    unknown_topic,
)
from strom.cli.failure import Failure
from strom.cli.options import ClientOptions
from strom.cli.plain import ask
from strom.wire.messages import Call


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
        call = Call("find_coordinator", 6)
        asked = call.request.FindCoordinatorRequest(key_type=0, coordinator_keys=("g",))
        with pytest.raises(Failure, match="is that a Kafka port, and a plain one"):
            ask(server.getsockname()[:2], call, asked)
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


@pytest.mark.parametrize("host", [".", "a..b", "a" * 70])
def test_a_name_that_no_host_can_have_is_one_line(strom, host):
    result = strom("topic", "list", "-b", f"{host}:1")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"strom: no broker at {host}:1: ")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["error_cb", "stats_cb", "default.topic.config", "on_commit"])
def test_a_property_that_no_text_can_be_is_one_line(on_cluster, topic, name):
    result = on_cluster("consume", topic, "-X", f"{name}=x", code=2)
    assert result.stderr.startswith("strom: client property: ")
    assert result.stderr.count("\n") == 1


def test_the_client_library_does_not_say_the_same_many_times_a_second():
    """While a broker is away, each attempt to reach it is a line of librdkafka's."""
    shown = Repeats()

    def is_shown(text, at):
        line = logging.makeLogRecord({"msg": text, "created": at})
        return shown.filter(line)

    refused = "FAIL host:1: Connection refused (after {}ms in state CONNECT)"
    assert is_shown(refused.format(0), 100.0)
    assert not is_shown(refused.format(0), 100.05)
    assert not is_shown(refused.format(4), 100.1)
    assert is_shown("FAIL host:2: Connection refused", 100.2)
    assert not is_shown(refused.format(0), 99.0 + REPEAT_SECONDS)
    assert is_shown(refused.format(0), 100.0 + REPEAT_SECONDS)
    assert not is_shown(refused.format(0), 101.0 + REPEAT_SECONDS)
