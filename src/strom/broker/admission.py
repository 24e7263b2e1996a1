"""How many are let in: the limits of single addresses.

A setting names hosts, and a newcomer has an address. Names are looked up when the setting comes
into force, since a name server may take long, and not again before it changes.
"""

from strom.broker.network import Network
from strom.metadata.settings.definition import SettingsError
from strom.metadata.settings.listeners import connection_limits
from strom.metadata.settings.values import BrokerSettings

OVERRIDES = "max.connections.per.ip.overrides"


def address_limits(settings: BrokerSettings, network: Network) -> dict[str, int]:
    """Return how many connections single addresses may have; raise SettingsError for no host."""
    limits: dict[str, int] = {}
    for host, count in connection_limits(settings).items():
        try:
            addresses = network.resolve(host)
        except (OSError, UnicodeError) as error:
            why = (error.strerror if isinstance(error, OSError) else None) or error
            raise SettingsError(f"cannot find {host}, which {OVERRIDES} names: {why}") from error
        limits |= dict.fromkeys(addresses, count)
    return limits
