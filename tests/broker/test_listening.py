"""Listeners that come and go while the broker runs, by `listeners` of one broker (as in Kafka)."""

import logging
import socket

import pytest

from strom.testing.broker import LocalBroker
from tests.conformance.raw import Raw
from tests.nodes import free_port
from tests.patience import until

SETTINGS = {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,EXTRA:PLAINTEXT"}
OWN = "PLAINTEXT://127.0.0.1:0"
SET, DELETE = 0, 1

pytestmark = pytest.mark.slow


@pytest.fixture
def broker(tmp_path):
    with LocalBroker(SETTINGS, directory=tmp_path) as local:
        yield local


@pytest.fixture
def port():
    return free_port()


def change(raw, value, operation=SET):
    """Set the listeners of the broker; what it says to that."""
    given = {"name": "listeners", "config_operation": operation, "value": value}
    resource = {"resource_type": 4, "resource_name": "1", "configs": [given]}
    asked = {"resources": [resource], "validate_only": False}
    (told,) = raw.ask("incremental_alter_configs", 1, asked)["responses"]
    return told["error_code"], told["error_message"]


def add(raw, port):
    assert change(raw, f"{OWN},EXTRA://127.0.0.1:{port}")[0] == "none"


def brokers_told(port):
    """What a client is told that comes by the port; None if nobody listens there."""
    try:
        with Raw(f"127.0.0.1:{port}") as other:
            (told,) = other.ask("metadata", 12, {"topics": []})["brokers"]
            return told["host"], told["port"]
    except ConnectionError:
        return None


def test_a_listener_is_opened_and_its_clients_are_told_of_it(broker, raw, port):
    add(raw, port)
    assert until(lambda: brokers_told(port)) == ("127.0.0.1", port)
    own = int(broker.bootstrap.rpartition(":")[2])
    assert brokers_told(own) == ("127.0.0.1", own)


def test_a_listener_that_is_gone_takes_its_connections_along(raw, port):
    add(raw, port)
    until(lambda: brokers_told(port))
    with Raw(f"127.0.0.1:{port}") as other:
        other.ask("api_versions", 0, {})
        assert change(raw, None, DELETE)[0] == "none"
        assert other.read_frame() is None
    assert brokers_told(port) is None
    assert raw.ask("api_versions", 0, {})["error_code"] == "none"


def test_a_listener_that_was_added_is_there_after_a_restart(broker, raw, port):
    add(raw, port)
    until(lambda: brokers_told(port))
    broker.stop()
    broker.start()
    assert until(lambda: brokers_told(port)) == ("127.0.0.1", port)


def test_another_address_of_a_listener_counts_from_the_next_start(raw, port):
    assert change(raw, f"PLAINTEXT://127.0.0.1:{port},EXTRA://127.0.0.1:0")[0] == "none"
    assert raw.ask("api_versions", 0, {})["error_code"] == "none"
    assert brokers_told(port) is None


def test_a_port_that_is_taken_is_told_and_leaves_the_others_open(raw, caplog):
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        with caplog.at_level(logging.WARNING, "strom.network"):
            add(raw, taken)
            until(lambda: f"Cannot listen at EXTRA://127.0.0.1:{taken}" in caplog.text)
    assert raw.ask("api_versions", 0, {})["error_code"] == "none"


def test_a_host_that_cannot_be_is_told_and_does_not_end_the_looking(raw, port, caplog):
    with caplog.at_level(logging.WARNING, "strom.network"):
        assert change(raw, f"{OWN},EXTRA://a..b:{port}")[0] == "none"
        until(lambda: f"Cannot listen at EXTRA://a..b:{port}" in caplog.text)
    add(raw, port)
    assert until(lambda: brokers_told(port)) == ("127.0.0.1", port)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("EXTRA://127.0.0.1", "write it as NAME://host:port"),
        ("OTHER://127.0.0.1:1", "No security protocol defined for listener OTHER"),
        ("EXTRA://127.0.0.1:1,EXTRA://127.0.0.1:2", "Each listener must have a different name"),
        ("EXTRA://127.0.0.1:1,PLAINTEXT://127.0.0.1:1", "must have a different port"),
    ],
)
def test_what_cannot_be_read_is_refused_and_changes_nothing(raw, value, why):
    code, told = change(raw, value)
    assert code == "invalid_request"
    assert why in told
    assert raw.ask("api_versions", 0, {})["error_code"] == "none"
