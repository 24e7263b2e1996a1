"""Options as they were given, read as what they must be, with the words to say what is wrong.

Names are compared in lower case: Spark hands them over so.
"""

import re
from collections.abc import Iterable, Mapping

from strom.spark.failure import OptionError

_TRUTH = {"true": True, "false": False}
#: As Java reads one; Python would also take digits in groups, and those of any script.
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")

#: What a number in Kafka's settings and in its protocol can be.
INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1
PORT_MAX = 2**16 - 1
CLIENT_ID_BYTES_MAX = 2**15 - 1

#: One of them says what is read.
SUBSCRIPTIONS = ("assign", "subscribe", "subscribePattern")


class Given:
    """The options of a read or a write."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options

    def text(self, name: str) -> str | None:
        """Return what was given, without the blanks around it."""
        value = self._options.get(name.lower())
        return None if value is None else value.strip()

    def truth(self, name: str, default: bool) -> bool:
        """Return whether the option is on."""
        value = self.text(name)
        if value is None:
            return default
        if value.lower() not in _TRUTH:
            raise OptionError(f"Option '{name}' is true or false, not '{value}'.")
        return _TRUTH[value.lower()]

    def number(self, name: str, default: int, *, least: int = 0, most: int = INT_MAX) -> int:
        """Return a number that is large enough, and no larger than can be."""
        found = self.integer(name)
        if found is not None and found < least:
            raise OptionError(f"Option '{name}' is at least {least}, not {found}.")
        if found is not None and found > most:
            raise OptionError(f"Option '{name}' is at most {most}, not {found}.")
        return default if found is None else found

    def integer(self, name: str) -> int | None:
        """Return any whole number that Java has."""
        value = self.text(name)
        if value is None:
            return None
        if not _WHOLE.fullmatch(value) or abs(int(value)) > LONG_MAX:
            raise OptionError(f"Option '{name}' is a whole number, not '{value}'.")
        return int(value)

    def client_id(self) -> str:
        """Return the name under which brokers know a connection."""
        name = self.text("kafka.client.id") or "strom-spark"
        if len(name.encode()) > CLIENT_ID_BYTES_MAX:
            raise OptionError(f"Option 'kafka.client.id' has at most {CLIENT_ID_BYTES_MAX} bytes.")
        return name

    def servers(self) -> tuple[tuple[str, int], ...]:
        """Return where the brokers are."""
        servers = parse_servers(self.text("kafka.bootstrap.servers") or "")
        if not servers:
            raise OptionError("Option 'kafka.bootstrap.servers' is missing: HOST:PORT, …")
        return servers


def tell_foreign(given: Mapping[str, str], foreign: Iterable[str], direction: str) -> list[str]:
    """Say which options have no effect as they are for the other direction.

    The options of a view that is read and written say both where its rows come from and where they
    go; then each side leaves alone what is the other's, without a word.
    """
    if "topic" in given and any(each.lower() in given for each in SUBSCRIPTIONS):
        return []
    return [
        f"Option '{name}' has no effect: it is for {direction}."
        for name in given
        if name in foreign
    ]


def parse_servers(text: str) -> tuple[tuple[str, int], ...]:
    """Read `HOST:PORT, HOST:PORT`; an address of IPv6 stands in brackets."""
    servers = []
    for part in filter(None, (each.strip() for each in text.split(","))):
        host, _, port = part.rpartition(":")
        if not host or not _WHOLE.fullmatch(port) or not 0 <= int(port) <= PORT_MAX:
            raise OptionError(f"Option 'kafka.bootstrap.servers': '{part}' is not HOST:PORT.")
        servers.append((host.strip("[]"), int(port)))
    return tuple(servers)
