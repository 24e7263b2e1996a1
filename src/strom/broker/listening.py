"""Where the broker listens: bound at the start, changed with `listeners` while it runs.

A change goes by names, as in Kafka. A listener that is new is opened; one that is gone is closed,
and so are its connections; one that has another address stays where it is until the next start.
Who comes by a new one is told its own address, unless `advertised.listeners` names others.
"""

import asyncio
import contextlib
import errno
import logging
from collections.abc import Mapping
from typing import Final

from strom.broker.context import Endpoint, Parts
from strom.broker.network import EVERY_ADDRESS, Address, Listening, Network
from strom.broker.server import Server
from strom.metadata.settings import listeners
from strom.metadata.settings.definition import SettingsError
from strom.metadata.settings.listeners import EVERY_INTERFACE, Listeners, read_listeners
from strom.metadata.settings.values import BrokerSettings

log = logging.getLogger("strom.network")

#: How long a change waits at most.
CHECK_SECONDS: Final = 1
#: How often a free port is picked that is not free at another address of the same name.
PORT_ATTEMPTS_MAX: Final = 20
#: What a name has that only others can listen at: another machine's address, or no IPv6 here.
NOT_HERE: Final = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
#: Hosts that mean every address, and that nobody can be told.
WILDCARDS: Final = (*EVERY_ADDRESS, EVERY_INTERFACE)
#: What says where to listen.
SETTINGS: Final = ("listeners", "listener.security.protocol.map")


class ListenersInForce:
    """Opens and closes listeners as the settings say that are in force."""

    def __init__(self, parts: Parts, server: Server) -> None:
        self._parts = parts
        self._server = server
        #: What the settings said when they were last looked at.
        self._given: tuple[object, ...] = ()

    async def run(self) -> None:
        """Follow the settings for as long as the broker serves."""
        while True:
            await self.follow()
            await asyncio.sleep(CHECK_SECONDS)

    async def follow(self) -> None:
        """Have just the listeners open that are named now; what cannot be is told."""
        settings = self._parts.settings
        given = tuple(settings[each] for each in SETTINGS)
        if given == self._given:
            return
        self._given = given
        try:
            wanted = read_listeners(settings)
        except SettingsError as error:
            # The file may have changed since they were set.
            log.warning("The listeners stay as they are: %s", error)
            return
        names = {each.name for each in wanted.bound}
        for name in self._server.listeners:
            if name not in names:
                self._shut(name)
        for each in wanted.bound:
            if each.name not in self._server.listeners:
                await self._open(each, wanted, settings)

    def _shut(self, name: str) -> None:
        log.info("Closing the listener %s", name)
        self._parts.endpoints.pop(name, None)
        self._parts.controller_endpoints.pop(name, None)
        self._server.shut(name)

    async def _open(
        self, wanted: listeners.Endpoint, among: Listeners, settings: BrokerSettings
    ) -> None:
        parts = self._parts
        address = Address(wanted.name, wanted.host, wanted.port)
        network = parts.host.network
        try:
            # A host's name may have to be asked for.
            places = await parts.host.offload(lambda: listen(network, address, settings))
        except OSError as error:
            log.warning("Cannot listen at %s: %s", wanted, error.strerror or error)
            return
        if not self._server.open(wanted.name, places):
            for each in places:
                each.close()
            return
        advertise(parts, among, {wanted.name: places[0].port})
        log.info("Listening at %s", wanted)


def advertise(parts: Parts, among: Listeners, ports: Mapping[str, int]) -> None:
    """Say where the broker and its controller are reached by listeners whose ports are known."""
    for endpoints, advertised in (
        (parts.endpoints, among.advertised),
        (parts.controller_endpoints, among.advertised_controller),
    ):
        for each in advertised:
            if each.name in ports:
                host = "" if each.host in WILDCARDS else each.host
                endpoints[each.name] = Endpoint(host, each.port or ports[each.name])


def bind(
    network: Network, addresses: list[Address], settings: BrokerSettings
) -> dict[str, list[Listening]]:
    """Take every address, or none; return them by listener. None is accepted from yet."""
    with contextlib.ExitStack() as held:
        listening: dict[str, list[Listening]] = {}
        for each in addresses:
            listening[each.listener] = listen(network, each, settings)
            for place in listening[each.listener]:
                held.callback(place.close)
        held.pop_all()
        return listening


def listen(network: Network, address: Address, settings: BrokerSettings) -> list[Listening]:
    """Listen at all addresses of the host, at one port; a free one is tried until all have it."""
    if address.host in EVERY_ADDRESS:
        return [network.listen(address, settings)]
    hosts = network.resolve(address.host)
    attempts = 1 if address.port else PORT_ATTEMPTS_MAX
    while True:
        attempts -= 1
        try:
            return listen_at_all(network, hosts, address, settings)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or not attempts:
                raise


def listen_at_all(
    network: Network, hosts: list[str], address: Address, settings: BrokerSettings
) -> list[Listening]:
    """Listen at these addresses, or at none; without those that a name has and this machine not."""
    places: list[Listening] = []
    missing: OSError | None = None
    with contextlib.ExitStack() as held:
        for host in hosts:
            port = places[0].port if places else address.port
            try:
                places.append(network.listen(Address(address.listener, host, port), settings))
            except OSError as error:
                if error.errno not in NOT_HERE:
                    raise
                missing = error
            else:
                held.callback(places[-1].close)
        if missing is not None and not places:
            raise missing
        held.pop_all()
        return places
