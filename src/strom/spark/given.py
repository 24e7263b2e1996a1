"""Options as they were given, read as what they must be, with the words to say what is wrong.

Names are compared in lower case: Spark hands them over so.
"""

from collections.abc import Iterable, Mapping

from strom.spark.failure import OptionError

_TRUTH = {"true": True, "false": False}

PORT_MAX = 2**16 - 1

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

    def number(self, name: str, default: int, *, least: int = 0) -> int:
        """Return a number that is large enough."""
        found = self.integer(name)
        if found is not None and found < least:
            raise OptionError(f"Option '{name}' is at least {least}, not {found}.")
        return default if found is None else found

    def integer(self, name: str) -> int | None:
        """Return any whole number."""
        value = self.text(name)
        if value is None:
            return None
        try:
            return int(value)
        except ValueError:
            raise OptionError(f"Option '{name}' is a whole number, not '{value}'.") from None

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
        if not host or not port.isdigit() or int(port) > PORT_MAX:
            raise OptionError(f"Option 'kafka.bootstrap.servers': '{part}' is not HOST:PORT.")
        servers.append((host.strip("[]"), int(port)))
    return tuple(servers)
