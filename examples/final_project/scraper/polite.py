"""Whether, when and how a site is asked: robots.txt, a pace per host, and patience.

Pure: the time and chance are arguments. The rules are those of RFC 9309 (robots: what cannot be
fetched forbids everything, what does not exist allows everything), RFC 9110 (Retry-After,
conditional requests), and back-off with full jitter, so that scrapers that failed together do not
come back together.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from math import ceil
from random import Random
from urllib.parse import urlsplit

from protego import Protego

AGENT = "strom-final-project/1"
ATTEMPTS_MAX = 5
BACK_OFF_FIRST_MS = 500
BACK_OFF_MAX_MS = 60_000
RETRY_AFTER_MAX_MS = 3_600_000
#: The pace for sites that ask for none.
PACE_DEFAULT_MS = 200
#: robots.txt is asked for again after a day (RFC 9309, 2.4), or sooner if it could not be had.
ROBOTS_KEPT_MS = 86_400_000
ROBOTS_MISSED_MS = 30_000
#: So often a page may be elsewhere before it is given up (RFC 9309, 2.3.1.2 has as many).
REDIRECTS_MAX = 5

#: As many digits as a wait may have, and more than any that is meant.
DIGITS_MAX = 15

BYTE_ORDER_MARK = "\ufeff"
#: Of a host whose rules are not known.
NOTHING = "User-agent: *\nDisallow: /"


@dataclass(frozen=True, slots=True)
class Robots:
    """What a host allows, and how fast, until when we may believe it."""

    rules: Protego
    pace_ms: int
    until_ms: int

    def allows(self, url: str) -> bool:
        """Return whether the page may be fetched."""
        try:
            urlsplit(url)
            return self.rules.can_fetch(url, AGENT)
        except ValueError:
            # No address at all: a redirect may lead anywhere.
            return False


def robots(status: int | None, text: str, now_ms: int) -> Robots:
    """Return what the answer to /robots.txt means; None is no answer."""
    if status == 200:
        rules = Protego.parse(text.removeprefix(BYTE_ORDER_MARK))
        return Robots(rules, _pace_ms(rules), now_ms + ROBOTS_KEPT_MS)
    if status is not None and 400 <= status < 500:
        return Robots(Protego.parse(""), PACE_DEFAULT_MS, now_ms + ROBOTS_KEPT_MS)
    return Robots(Protego.parse(NOTHING), PACE_DEFAULT_MS, now_ms + ROBOTS_MISSED_MS)


def _pace_ms(rules: Protego) -> int:
    """Return the slower of the paces that are asked for; one for some hours counts at all hours."""
    paces = []
    if rate := rules.request_rate(AGENT):
        paces.append(1000 * rate.seconds / rate.requests)
    if (delay := rules.crawl_delay(AGENT)) is not None:
        paces.append(1000 * delay)
    return ceil(min(ROBOTS_KEPT_MS, max(paces, default=PACE_DEFAULT_MS)))


@dataclass(frozen=True, slots=True)
class Validators:
    """What a server gave us to ask "is it still the same?" with."""

    etag: str | None = None
    last_modified: str | None = None

    @classmethod
    def of(cls, headers: Mapping[str, str]) -> "Validators":
        """Return the validators of an answer, those that can be sent back."""
        etag, last_modified = (
            value if value is not None and value.isascii() else None
            for value in (headers.get("etag"), headers.get("last-modified"))
        )
        return cls(etag, last_modified)

    def headers(self) -> dict[str, str]:
        """Return the headers of a conditional request."""
        named = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {name: value for name, value in named.items() if value is not None}


class Pace:
    """When each host may be asked next."""

    def __init__(self) -> None:
        self._free_ms: dict[str, int] = {}

    def wait_ms(self, host: str, now_ms: int) -> int:
        """Return how long to wait before the host may be asked; 0 is now."""
        return max(0, self._free_ms.get(host, 0) - now_ms)

    def asked(self, host: str, now_ms: int, pace_ms: int) -> None:
        """Note a request to the host."""
        self._free_ms[host] = max(self._free_ms.get(host, 0), now_ms + pace_ms)

    def hold(self, host: str, until_ms: int) -> None:
        """Leave the host alone until then: it said Retry-After, to all of us."""
        self._free_ms[host] = max(self._free_ms.get(host, 0), until_ms)


def back_off_ms(attempt: int, chance: Random) -> int:
    """Return how long to wait after that many failed attempts: anything up to the double."""
    return chance.randint(1, min(BACK_OFF_MAX_MS, BACK_OFF_FIRST_MS << min(attempt - 1, 20)))


def retry_after_ms(value: str | None, now_ms: int) -> int | None:
    """Return how long a Retry-After header asks us to wait; None if it cannot be read."""
    if value is None:
        return None
    if value.isascii() and value.strip().isdigit():
        return min(RETRY_AFTER_MAX_MS, 1000 * int(value.strip().lstrip("0")[:DIGITS_MAX] or 0))
    try:
        until_ms = int(1000 * parsedate_to_datetime(value).timestamp())
    except (ValueError, OverflowError):
        return None
    return min(RETRY_AFTER_MAX_MS, max(0, until_ms - now_ms))
