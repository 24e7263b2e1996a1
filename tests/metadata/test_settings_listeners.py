"""Where the broker listens and what it tells clients (BRK-03, BRK-22)."""

import pytest

from strom.metadata.settings import BrokerSettings, SettingsError
from strom.metadata.settings.listeners import Endpoint, connection_limits, read_listeners

MAP = "listener.security.protocol.map"


def read(**static):
    return read_listeners(BrokerSettings({key.replace("_", "."): v for key, v in static.items()}))


def test_without_settings_every_interface_is_served_on_port_9092():
    listeners = read()
    assert listeners.broker == (Endpoint("PLAINTEXT", "PLAINTEXT", "", 9092),)
    assert listeners.advertised == listeners.broker
    assert listeners.controller == ()


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("PLAINTEXT://localhost:9092", "localhost", 9092),
        ("PLAINTEXT://127.0.0.1:0", "127.0.0.1", 0),
        ("PLAINTEXT://[::1]:9092", "::1", 9092),
        ("PLAINTEXT://::1:9092", "::1", 9092),
        ("PLAINTEXT://[fe80::1%eth0]:9092", "fe80::1%eth0", 9092),
        ("plaintext://my-host_1:65535", "my-host_1", 65535),
    ],
)
def test_addresses_of_either_family(text, host, port):
    (endpoint,) = read(listeners=text).broker
    assert endpoint == ("PLAINTEXT", "PLAINTEXT", host, port)
    assert read(listeners=str(endpoint)).broker == (endpoint,)


def test_several_listeners_with_names_of_their_own():
    listeners = read_listeners(
        BrokerSettings(
            {
                "listeners": "INNER://:9092,OUTER://:9093",
                "advertised.listeners": "INNER://broker:9092,OUTER://example.org:443",
                MAP: "inner:PLAINTEXT,OUTER:plaintext",
                "inter.broker.listener.name": "OUTER",
            }
        )
    )
    assert [each.name for each in listeners.broker] == ["INNER", "OUTER"]
    assert [str(each) for each in listeners.advertised] == [
        "INNER://broker:9092",
        "OUTER://example.org:443",
    ]


def test_a_port_may_be_shared_by_one_listener_of_each_family():
    shared = {"listeners": "A://127.0.0.1:9092,B://[::1]:9092", MAP: "A:PLAINTEXT,B:PLAINTEXT"}
    assert len(read_listeners(BrokerSettings(shared)).broker) == 2


def test_free_ports_do_not_collide():
    free = {"listeners": "A://127.0.0.1:0,B://127.0.0.1:0", MAP: "A:PLAINTEXT,B:PLAINTEXT"}
    assert [each.port for each in read_listeners(BrokerSettings(free)).broker] == [0, 0]


def test_the_controllers_listeners_are_not_told_to_clients():
    listeners = read_listeners(
        BrokerSettings(
            {
                "listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
                "controller.listener.names": "CONTROLLER",
            }
        )
    )
    assert [each.name for each in listeners.broker] == ["PLAINTEXT"]
    assert [each.port for each in listeners.controller] == [9093]
    assert listeners.advertised == listeners.broker
    assert listeners.advertised_controller == listeners.controller
    assert listeners.bound == listeners.broker + listeners.controller


def test_where_a_controller_is_reached_can_be_advertised():
    listeners = read_listeners(
        BrokerSettings(
            {
                "listeners": "PLAINTEXT://localhost:9092,CONTROLLER://:9093",
                "advertised.listeners": "PLAINTEXT://a:1,CONTROLLER://b:2",
                "controller.listener.names": "CONTROLLER",
            }
        )
    )
    assert [str(each) for each in listeners.advertised] == ["PLAINTEXT://a:1"]
    assert [str(each) for each in listeners.advertised_controller] == ["CONTROLLER://b:2"]


@pytest.mark.parametrize(
    ("static", "message"),
    [
        ({"listeners": "localhost:9092"}, "write it as NAME://host:port"),
        ({"listeners": "PLAINTEXT://localhost"}, "write it as NAME://host:port"),
        ({"listeners": "PLAINTEXT://localhost:99999"}, "write it as NAME://host:port"),
        ({"listeners": "PLAINTEXT://local host:9092"}, "write it as NAME://host:port"),
        ({"listeners": "INNER://:9092"}, "add INNER:PLAINTEXT to listener.security.protocol.map"),
        ({"listeners": "PLAINTEXT://a:1,plaintext://b:2"}, "must have a different name"),
        (
            {"listeners": "A://a:1,B://b:1", MAP: "A:PLAINTEXT,B:PLAINTEXT"},
            "must have a different port",
        ),
        (
            {"listeners": "A://[::1]:1,B://[::2]:1", MAP: "A:PLAINTEXT,B:PLAINTEXT"},
            "must have a different port",
        ),
        ({"listeners": "PLAINTEXT://0.0.0.0:9092"}, "PLAINTEXT://localhost:9092"),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"}, "nonroutable meta-address"),
        ({"advertised.listeners": "SSL://a:9092"}, "Found SSL. The valid options"),
        ({MAP: "A"}, "write NAME:PROTOCOL"),
        ({MAP: "A:TLS"}, "Invalid security protocol `TLS`"),
        ({"listeners": "SSL://:9092"}, "wants SSL, which is not served"),
        ({"controller.listener.names": "CONTROLLER"}, "must contain at least one value appearing"),
        ({"controller.listener.names": "PLAINTEXT"}, "at least one broker advertised listener"),
        (
            {
                "listeners": "PLAINTEXT://a:1,C://a:2",
                "advertised.listeners": "C://a:2",
                "controller.listener.names": "C",
            },
            "at least one broker advertised listener",
        ),
        ({"inter.broker.listener.name": "X"}, "currently configured listeners are PLAINTEXT"),
        (
            {
                "inter.broker.listener.name": "PLAINTEXT",
                "security.inter.broker.protocol": "PLAINTEXT",
            },
            "Only one of inter.broker.listener.name and security.inter.broker.protocol",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused(static, message):
    with pytest.raises(SettingsError) as raised:
        read_listeners(BrokerSettings(static))
    assert message in str(raised.value)


def test_limits_of_single_addresses():
    settings = BrokerSettings({"max.connections.per.ip.overrides": "localhost:5, ::1:7"})
    assert connection_limits(settings) == {"localhost": 5, "::1": 7}
    assert connection_limits(BrokerSettings()) == {}
