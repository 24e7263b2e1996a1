"""The operating system's sockets, as the broker asks for them."""

import socket
import sys
from contextlib import closing

import pytest

from strom.broker.network import Address, RealNetwork
from strom.metadata.settings.values import BrokerSettings

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a socket choose")


def congestion_control(accepted):
    return accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0")


def listening_with(**given):
    settings = BrokerSettings({name.replace("_", "."): value for name, value in given.items()})
    return RealNetwork().listen(Address("PLAINTEXT", "127.0.0.1", 0), settings)


def accepted_from(source):
    """The broker's end of a connection from that address, and what the system would choose."""
    listening = listening_with()
    with (
        closing(listening),
        socket.create_connection(
            ("127.0.0.1", listening.port), source_address=(source, 0)
        ) as client,
        listening.accept().socket as accepted,
    ):
        return congestion_control(accepted), congestion_control(client)


@ON_LINUX
def test_what_goes_to_a_peer_on_this_machine_is_not_paced():
    chosen, _ = accepted_from("127.0.0.1")

    assert chosen == b"reno"


@ON_LINUX
def test_what_goes_to_another_address_is_sent_as_the_system_chooses():
    chosen, system = accepted_from("127.0.0.2")

    assert chosen == system


def held_bytes(**given):
    """What the system holds for a connection in each direction, by the broker's settings."""
    listening = listening_with(**given)
    with (
        closing(listening),
        socket.create_connection(("127.0.0.1", listening.port)),
        listening.accept().socket as accepted,
    ):
        return [
            accepted.getsockopt(socket.SOL_SOCKET, option)
            for option in (socket.SO_RCVBUF, socket.SO_SNDBUF)
        ]


def test_sockets_are_as_large_as_the_system_makes_them():
    assert held_bytes() == held_bytes(
        socket_receive_buffer_bytes="-1", socket_send_buffer_bytes="-1"
    )


def test_sockets_are_as_large_as_the_settings_say():
    incoming, outgoing = held_bytes(
        socket_receive_buffer_bytes="30000", socket_send_buffer_bytes="20000"
    )
    others = held_bytes()

    # Linux holds as much again for its own accounts.
    assert incoming in {30_000, 60_000}
    assert outgoing in {20_000, 40_000}
    assert incoming < others[0]
    assert outgoing < others[1]


@pytest.mark.parametrize("host", ["a..b", "x" * 64])
def test_a_name_that_no_host_can_have_is_not_found(host):
    with pytest.raises(socket.gaierror, match="Name or service not known"):
        RealNetwork().resolve(host)
