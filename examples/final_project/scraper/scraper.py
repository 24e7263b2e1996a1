"""One attempt at one job: ask politely, read, write what is new, say when to come again.

It never waits: what has to wait is given back as a time, which the schedule keeps. A page's
validators are remembered only when what the page said is written; otherwise the next fetch would be
answered "unchanged", and the facts of the one before were lost.
"""

import logging
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

from confluent_kafka import KafkaException

from examples.final_project.scraper import polite, reading
from examples.final_project.scraper.fetching import Fetcher
from examples.final_project.scraper.jobs import Items, Job
from examples.final_project.scraper.ledger import Ledger
from examples.final_project.scraper.polite import Pace, Robots, Validators
from examples.final_project.scraper.reading import (
    Again,
    Answer,
    Facts,
    Failure,
    GaveUp,
    Moved,
    Unchanged,
)

WRITE_AGAIN_MS = 1_000
#: The reason for coming again when nothing was asked yet.
HELD_BACK = "the pace of the host"
TOKEN = re.compile(r"[!-~]{1,1000}")

log = logging.getLogger(__name__)


class Page(NamedTuple):
    """Where a job's page is, and after how many redirects."""

    url: str
    redirects: int = 0
    #: How many pages of the same job were before it.
    pages: int = 0

    @property
    def host(self) -> str:
        """Return whom to ask, by whose pace."""
        return urlsplit(self.url).netloc


class Scraper:
    """What is known of the hosts and pages, and the way to the topics."""

    def __init__(
        self, fetcher: Fetcher, ledger: Ledger, now_ms: Callable[[], int], chance: Random
    ) -> None:
        self._fetcher = fetcher
        self._ledger = ledger
        self._now_ms = now_ms
        self._chance = chance
        self._pace = Pace()
        self._robots: dict[str, Robots] = {}
        self._validators: dict[str, Validators] = {}
        #: Where the next attempt of a job goes on, by its page.
        self._moved: dict[str, Page] = {}
        #: How often each thing happened; for the log, the demo and tests.
        self.counts: Counter[str] = Counter()

    def attempt(self, job: Job, number: int = 1) -> Again | None:
        """Try the job; return when to try again, or None if the schedule says."""
        page = self._moved.get(job.url, Page(job.url))
        now_ms = self._now_ms()
        if wait_ms := self._pace.wait_ms(page.host, now_ms):
            self.counts["held back"] += 1
            return Again(wait_ms, HELD_BACK)
        self._moved.pop(job.url, None)
        robots = self._robots_of(page, now_ms)
        if not robots.allows(page.url):
            self.counts["forbidden"] += 1
            log.warning("%s: robots.txt of %s does not allow %s", job.name, page.host, page.url)
            return None
        headers = self._validators.get(page.url, Validators()).headers()
        if job.token is not None and page.host == Page(job.url).host:
            headers |= authorisation(job.token)
        self._pace.asked(page.host, now_ms, max(robots.pace_ms, job.pace_ms))
        answer = self._fetcher.get(page.url, headers)
        return self._follow(job, page, answer, number)

    def _robots_of(self, page: Page, now_ms: int) -> Robots:
        known = self._robots.get(page.host)
        if known is None or known.until_ms <= now_ms:
            scheme = urlsplit(page.url).scheme
            answer = self._fetcher.get(f"{scheme}://{page.host}/robots.txt", follow=True)
            known = _robots_in(answer, now_ms)
            self._robots[page.host] = known
        return known

    def _follow(self, job: Job, page: Page, answer: Answer | Failure, number: int) -> Again | None:
        now_ms = self._now_ms()
        match reading.outcome(job, answer, number, now_ms, self._chance):
            case Facts() as facts:
                return self._write(job, facts, page)
            case Unchanged():
                self.counts["unchanged"] += 1
                return None
            case Moved(location):
                return self._go_to(job, page, location)
            case Again() as again:
                self.counts["again"] += 1
                log.info("%s: %s, again in %d ms", job.name, again.reason, again.wait_ms)
                if page.pages:
                    self._moved[job.url] = page
                if again.host_waits:
                    self._pace.hold(page.host, now_ms + again.wait_ms)
                return again
            case GaveUp(reason):
                self.counts["gave up"] += 1
                log.warning("%s: gave up after %d attempts: %s", job.name, number, reason)
                return None

    def _go_to(self, job: Job, page: Page, location: str) -> Again | None:
        """Ask where the page is now: another request, by the rules of whoever it goes to."""
        if page.redirects >= polite.REDIRECTS_MAX:
            self.counts["gave up"] += 1
            log.warning("%s: gave up after %d redirects, at %s", job.name, page.redirects, page.url)
            return None
        try:
            moved = Page(urljoin(page.url, location), page.redirects + 1, page.pages)
            wait_ms = self._pace.wait_ms(moved.host, self._now_ms())
        except ValueError as error:
            self.counts["gave up"] += 1
            log.warning("%s: gave up: it has moved to no address: %s", job.name, error)
            return None
        self._moved[job.url] = moved
        return Again(wait_ms, HELD_BACK)

    def _write(self, job: Job, said: Facts, page: Page) -> Again | None:
        try:
            written = self._ledger.write(said.facts, self._now_ms())
        except KafkaException as error:
            self.counts["not written"] += 1
            log.warning("%s: not written, fetched again soon: %s", job.name, error)
            # This page once more, not the first one.
            self._moved[job.url] = page
            return Again(WRITE_AGAIN_MS, "not written")
        self._validators[page.url] = said.validators
        self.counts["fetched"] += 1
        self.counts["written"] += written
        return None if said.following is None else self._go_on(job, page, said.following)

    def _go_on(self, job: Job, page: Page, following: str) -> Again | None:
        """Ask for the next page of the same host, and not for ever."""
        after = _after(page, following)
        if after is None:
            self.counts["gave up"] += 1
            log.warning("%s: gave up its other pages: they are elsewhere", job.name)
            return None
        if isinstance(job.reads, Items) and after.pages >= job.reads.pages_max:
            self.counts["gave up"] += 1
            log.warning("%s: gave up after %d pages", job.name, after.pages)
            return None
        self._moved[job.url] = after
        return Again(self._pace.wait_ms(after.host, self._now_ms()), HELD_BACK)


def _after(page: Page, following: str) -> Page | None:
    """Return the page that an address names; None where that is another host's, or none."""
    try:
        url = urljoin(page.url, following)
        same = urlsplit(url)[:2] == urlsplit(page.url)[:2]
    except ValueError:
        return None
    return Page(url, pages=page.pages + 1) if same else None


def authorisation(token: Path) -> dict[str, str]:
    """Return the header with the token of a file; nothing if there is none that could be sent."""
    try:
        text = token.read_text().strip()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        log.warning("%s: not read, asked without: %s", token, type(error).__name__)
        return {}
    if not TOKEN.fullmatch(text):
        log.warning("%s: not a token, asked without", token)
        return {}
    return {"Authorization": f"Token {text}"}


def number_after(again: Again, number: int) -> int:
    """Return the number of the next attempt; one that the pace held back was none."""
    return number if again.reason == HELD_BACK else number + 1


def _robots_in(answer: Answer | Failure, now_ms: int) -> Robots:
    if isinstance(answer, Failure):
        return polite.robots(None, "", now_ms)
    return polite.robots(answer.status, answer.body.decode(errors="replace"), now_ms)
