"""The limits of single addresses, whatever their hosts are called."""

import socket

import pytest

from strom.broker.admission import address_limits
from strom.broker.network import RealNetwork
from strom.metadata.settings.definition import SettingsError
from strom.metadata.settings.values import BrokerSettings

OVERRIDES = "max.connections.per.ip.overrides"


def limits_of(text):
    return address_limits(BrokerSettings({OVERRIDES: text}), RealNetwork())


def test_nobody_has_a_limit_of_its_own_unless_it_is_set():
    assert limits_of("") == {}


def test_a_name_stands_for_all_of_its_addresses():
    assert limits_of("localhost:5")["127.0.0.1"] == 5


@pytest.mark.skipif(not socket.has_ipv6, reason="there is no IPv6 here")
@pytest.mark.parametrize("host", ["::1", "0:0:0:0:0:0:0:1", "[::1]", "0::0001"])
def test_an_address_is_the_same_however_it_is_written(host):
    assert limits_of(f"{host}:5") == {"::1": 5}


def test_an_address_of_the_old_family_is_known_on_a_socket_for_both():
    assert limits_of("::ffff:127.0.0.1:5") == {"127.0.0.1": 5}


class NoNames(RealNetwork):
    """A network without a name server."""

    def resolve(self, host):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


@pytest.mark.parametrize(
    ("host", "network"), [("a..b", RealNetwork()), ("x" * 64, RealNetwork()), ("pc", NoNames())]
)
def test_a_host_that_is_not_found_is_refused_in_one_line(host, network):
    with pytest.raises(SettingsError) as refused:
        address_limits(BrokerSettings({OVERRIDES: f"{host}:5"}), network)
    assert str(refused.value).startswith(f"cannot find {host}, which {OVERRIDES} names: ")
    assert "\n" not in str(refused.value)
