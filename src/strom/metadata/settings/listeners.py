"""Where the broker listens, and which addresses it tells to clients.

Kafka's rules for a node that is broker and controller at once. Names are upper case. A listener
that `controller.listener.names` names belongs to the controller and is told to those who ask for
controllers, never to clients; a single node needs none. Port 0 stays 0 here: only who binds the
socket knows better, and so it is with an empty host in an advertised address.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from strom.metadata.settings.definition import SettingsError, is_port, whole
from strom.metadata.settings.values import BrokerSettings

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
SERVED: Final = ("PLAINTEXT",)
EVERY_INTERFACE: Final = "0.0.0.0"
HOST_CHARACTERS: Final = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-%._:"
)


class Endpoint(NamedTuple):
    """One listener's name, protocol and address; an IPv6 host has no brackets here."""

    name: str
    protocol: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


class Listeners(NamedTuple):
    """What to bind and what to tell."""

    #: The listeners that serve clients and brokers.
    broker: tuple[Endpoint, ...]
    #: The listeners that serve the quorum; usually none on a single node.
    controller: tuple[Endpoint, ...]
    #: What clients are told, by the names of `broker`.
    advertised: tuple[Endpoint, ...]
    #: What is told of the controller, by the names of `controller`.
    advertised_controller: tuple[Endpoint, ...]

    @property
    def bound(self) -> tuple[Endpoint, ...]:
        """All there is to bind."""
        return self.broker + self.controller


def read_listeners(settings: BrokerSettings) -> Listeners:
    """Read and check all settings of listeners; raise SettingsError if they do not fit together."""
    names = tuple(name.upper() for name in settings.items("controller.listener.names"))
    protocols = read_protocols(settings, names)
    bound = read_endpoints("listeners", settings.items("listeners"), protocols)
    require_apart(bound, settings)
    controller = tuple(each for each in bound if each.name in names)
    broker = tuple(each for each in bound if each.name not in names)
    if names and not controller:
        raise SettingsError(
            "controller.listener.names must contain at least one value appearing in the "
            "'listeners' configuration when running the KRaft controller role"
        )
    if not broker:
        raise SettingsError(
            "There must be at least one broker advertised listener. "
            "Perhaps all listeners appear in controller.listener.names?"
        )
    given = settings.items("advertised.listeners")
    told = read_endpoints("advertised.listeners", given, protocols) if given else broker
    advertised = tuple(each for each in told if each.name not in names)
    require_advertisable(advertised, broker)
    require_between_brokers(settings, advertised)
    for each in bound:
        require_served(each)
    own = {each.name: each for each in told}
    told_of_controller = tuple(own.get(each.name, each) for each in controller)
    return Listeners(broker, controller, advertised, told_of_controller)


def read_protocols(settings: BrokerSettings, controller_names: tuple[str, ...]) -> dict[str, str]:
    """Read which protocol each listener name stands for."""
    protocols = {}
    for item in (settings.text("listener.security.protocol.map") or "").split(","):
        name, colon, protocol = (part.strip().upper() for part in item.partition(":"))
        if not colon or not name:
            raise SettingsError(
                f"cannot read {item.strip()!r} in listener.security.protocol.map: "
                "write NAME:PROTOCOL, separated by commas"
            )
        if protocol not in PROTOCOLS:
            raise SettingsError(
                f"Invalid security protocol `{protocol}` defined in "
                f"listener.security.protocol.map: use one of {', '.join(PROTOCOLS)}"
            )
        protocols[name] = protocol
    if "listener.security.protocol.map" not in settings.static:
        # Without a map, the controller's listeners are plain, as in Kafka (KIP-691).
        protocols = {**dict.fromkeys(controller_names, "PLAINTEXT"), **protocols}
    return protocols


def read_endpoints(
    setting: str, texts: tuple[str, ...], protocols: Mapping[str, str]
) -> tuple[Endpoint, ...]:
    """Read a list of addresses, each with a name of its own."""
    endpoints = tuple(read_endpoint(setting, text, protocols) for text in texts)
    if len({each.name for each in endpoints}) < len(endpoints):
        raise SettingsError(
            f"Each listener must have a different name, {setting}: {','.join(texts)}"
        )
    return endpoints


def read_endpoint(setting: str, text: str, protocols: Mapping[str, str]) -> Endpoint:
    """Read one NAME://host:port."""
    name, separator, address = text.partition("://")
    host, colon, port = address.rpartition(":")
    host = without_brackets(host)
    well_formed = separator and colon and name.strip() and set(host) <= HOST_CHARACTERS
    if not (well_formed and is_port(port)):
        raise SettingsError(
            f"cannot read {text!r} in {setting}: write it as NAME://host:port, "
            "for example PLAINTEXT://localhost:9092 or PLAINTEXT://[::1]:9092"
        )
    name = name.strip().upper()
    if name not in protocols:
        raise SettingsError(
            f"Error creating broker listeners from '{text}': No security protocol defined for "
            f"listener {name}; add {name}:PLAINTEXT to listener.security.protocol.map"
        )
    return Endpoint(name, protocols[name], host, int(port))


def without_brackets(host: str) -> str:
    """Return an IPv6 address without the brackets that it may have in front of a colon."""
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host


def require_apart(endpoints: tuple[Endpoint, ...], settings: BrokerSettings) -> None:
    """Refuse two listeners on a port, unless one is IPv4 and the other IPv6."""
    taken: dict[int, list[Endpoint]] = {}
    for each in endpoints:
        if each.port:
            taken.setdefault(each.port, []).append(each)
    for port, sharing in taken.items():
        families = [(":" in each.host, is_ipv4(each.host)) for each in sharing]
        if len(sharing) > 1 and sorted(families) != [(False, True), (True, False)]:
            raise SettingsError(
                "Each listener must have a different port unless exactly one listener has an IPv4 "
                "address and the other IPv6 address, listeners: "
                f"{','.join(settings.items('listeners'))}, port: {port}"
            )


def is_ipv4(host: str) -> bool:
    """Whether the host is an address of four numbers."""
    parts = host.split(".")
    return len(parts) == 4 and all(part.isdecimal() and whole(part) in range(256) for part in parts)


def require_advertisable(advertised: tuple[Endpoint, ...], broker: tuple[Endpoint, ...]) -> None:
    """Refuse to tell clients what they cannot use."""
    names = {each.name for each in broker}
    for each in advertised:
        if each.name not in names:
            raise SettingsError(
                "advertised.listeners listener names must be equal to or a subset of the ones "
                f"defined in listeners. Found {each.name}. The valid options based on the current "
                f"configuration are {','.join(sorted(names))}"
            )
        if each.host == EVERY_INTERFACE:
            raise SettingsError(
                "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a "
                f"routable IP address, for example advertised.listeners={each.name}://localhost:"
                f"{each.port}"
            )
    if not advertised:
        raise SettingsError("There must be at least one broker advertised listener.")


def require_served(endpoint: Endpoint) -> None:
    """Refuse a protocol that is not served, rather than serve it in the clear."""
    if endpoint.protocol not in SERVED:
        raise SettingsError(
            f"the listener {endpoint} wants {endpoint.protocol}, which is not served: "
            f"use a {SERVED[0]} listener"
        )


def require_between_brokers(settings: BrokerSettings, advertised: tuple[Endpoint, ...]) -> None:
    """Refuse a listener between brokers that is none, though a single node has no use for one."""
    name = settings.text("inter.broker.listener.name")
    if name is None:
        return
    if "security.inter.broker.protocol" in settings.static:
        raise SettingsError(
            "Only one of inter.broker.listener.name and security.inter.broker.protocol "
            "should be set."
        )
    names = [each.name for each in advertised]
    if name.upper() not in names:
        raise SettingsError(
            "inter.broker.listener.name must be a listener name defined in advertised.listeners. "
            f"The valid options based on currently configured listeners are {','.join(names)}"
        )


def connection_limits(settings: BrokerSettings) -> dict[str, int]:
    """Read the limits of single hosts from max.connections.per.ip.overrides."""
    limits = {}
    text = settings.text("max.connections.per.ip.overrides") or ""
    for item in filter(None, (each.strip() for each in text.split(","))):
        host, colon, count = item.rpartition(":")
        limit = whole(count.strip())
        if not colon or not host or limit is None or limit < 0:
            raise SettingsError(
                f"cannot read {item!r} in max.connections.per.ip.overrides: "
                "write host:count, separated by commas"
            )
        limits[without_brackets(host.strip())] = limit
    return limits
