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


def accepted_from(source):
    """The broker's end of a connection from that address, and what the system would choose."""
    listening = RealNetwork().listen(Address("PLAINTEXT", "127.0.0.1", 0), BrokerSettings())
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
