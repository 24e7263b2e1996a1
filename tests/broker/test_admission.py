"""The limits of single addresses, whatever their hosts are called; and how fast places come."""

import socket

import pytest

from strom.broker.admission import WAIT_MS_MAX, Bucket, Pace, address_limits
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


# How many a second.

NOW = 1_700_000_000_000


def taken(bucket, rate, now_ms):
    """How many places can be taken at once."""
    count = 0
    while bucket.wait_ms(rate, now_ms) == 0:
        bucket.take()
        count += 1
    return count


def test_a_bucket_has_as_many_places_as_a_second_brings():
    bucket = Bucket()
    assert taken(bucket, 10, NOW) == 10
    assert bucket.wait_ms(10, NOW) == 100


def test_places_come_back_at_the_rate_and_no_more_than_there_were():
    bucket = Bucket()
    taken(bucket, 10, NOW)
    assert taken(bucket, 10, NOW + 99) == 0
    assert taken(bucket, 10, NOW + 100) == 1
    assert taken(bucket, 10, NOW + 350) == 2
    assert bucket.wait_ms(10, NOW + 350) == 50
    assert taken(bucket, 10, NOW + 60_000) == 10


def test_over_time_nobody_gets_more_than_the_rate():
    bucket = Bucket()
    assert sum(taken(bucket, 7, NOW + now_ms) for now_ms in range(0, 10_000, 3)) in (76, 77)


def test_without_a_rate_there_are_no_places():
    assert Bucket().wait_ms(0, NOW) == WAIT_MS_MAX


def test_a_rate_that_is_raised_counts_at_once():
    bucket = Bucket()
    taken(bucket, 1, NOW)
    assert taken(bucket, 3, NOW) == 2


def test_a_clock_that_is_set_back_brings_nothing_and_stops_nothing():
    bucket = Bucket()
    taken(bucket, 10, NOW)
    assert bucket.wait_ms(10, NOW - 3_600_000) == 100
    assert taken(bucket, 10, NOW - 3_600_000 + 100) == 1


def test_a_listener_waits_for_its_own_rate_and_for_that_of_the_broker():
    settings = BrokerSettings(
        {
            "max.connection.creation.rate": "4",
            "listener.name.plaintext.max.connection.creation.rate": "2",
        }
    )
    pace = Pace()
    waits = []
    for listener in ("PLAINTEXT",) * 3 + ("OTHER",) * 3:
        waits.append(pace.wait_ms(listener, settings, NOW))
        if not waits[-1]:
            pace.take(listener)
    assert waits == [0, 0, 500, 0, 0, 250]
