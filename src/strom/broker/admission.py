"""How many are let in: the limits of single addresses, and how many a second.

A setting names hosts, and a newcomer has an address. Names are looked up when the setting comes
into force, since a name server may take long, and not again before it changes.

`max.connection.creation.rate` is for the broker, and for a listener that has one of its own. As in
Kafka nobody is refused for it: who comes too soon waits to be accepted.
"""

from collections import defaultdict

from strom.broker.network import Network
from strom.metadata.settings.definition import SettingsError
from strom.metadata.settings.listeners import connection_limits
from strom.metadata.settings.values import BrokerSettings

OVERRIDES = "max.connections.per.ip.overrides"
RATE = "max.connection.creation.rate"
MS_PER_SECOND = 1000
#: The longest wait for a place; then the rate is looked at again, which may have changed.
WAIT_MS_MAX = 1000


class Bucket:
    """Places that come back at a rate; as many as a second brings may be taken at once."""

    __slots__ = ("_filled_ms", "_missing")

    def __init__(self) -> None:
        #: How many places there are less than in a full bucket, when that was looked at.
        self._missing = 0.0
        self._filled_ms = 0

    def wait_ms(self, rate: int, now_ms: int) -> float:
        """Return how long it takes until there is a place; 0 if there is one."""
        # A clock that was set back brings nothing.
        passed_ms = max(0, now_ms - self._filled_ms)
        self._missing = max(0.0, self._missing - passed_ms * rate / MS_PER_SECOND)
        self._filled_ms = now_ms
        too_many = self._missing + 1 - rate
        if too_many <= 0:
            return 0
        return WAIT_MS_MAX if rate == 0 else min(too_many * MS_PER_SECOND / rate, WAIT_MS_MAX)

    def take(self) -> None:
        """Take a place, after having waited for it."""
        self._missing += 1


class Pace:
    """How fast newcomers are accepted, altogether and at each listener."""

    __slots__ = ("_all", "_by_listener")

    def __init__(self) -> None:
        self._all = Bucket()
        self._by_listener: defaultdict[str, Bucket] = defaultdict(Bucket)

    def wait_ms(self, listener: str, settings: BrokerSettings, now_ms: int) -> float:
        """Return how long the next one of the listener has to wait; 0 if it may come now."""
        own = self._by_listener[listener].wait_ms(settings.number_for(listener, RATE), now_ms)
        return max(own, self._all.wait_ms(settings.number(RATE), now_ms))

    def take(self, listener: str) -> None:
        """Count one that was accepted."""
        self._all.take()
        self._by_listener[listener].take()


def address_limits(settings: BrokerSettings, network: Network) -> dict[str, int]:
    """Return how many connections single addresses may have; raise SettingsError for no host."""
    limits: dict[str, int] = {}
    for host, count in connection_limits(settings).items():
        try:
            addresses = network.resolve(host)
        except OSError as error:
            why = error.strerror or error
            raise SettingsError(f"cannot find {host}, which {OVERRIDES} names: {why}") from error
        limits |= dict.fromkeys(addresses, count)
    return limits
