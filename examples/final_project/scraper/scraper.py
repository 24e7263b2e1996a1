"""One attempt at one job: ask politely, read, write what is new, say when to come again.

It never waits: what has to wait is given back as a time, which the schedule keeps. A page's
validators are remembered only when what the page said is written; otherwise the next fetch would be
answered "unchanged", and the facts of the one before were lost.
"""

import logging
from collections import Counter
from collections.abc import Callable
from random import Random
from urllib.parse import urlsplit

from confluent_kafka import KafkaException

from examples.final_project.scraper import polite, reading
from examples.final_project.scraper.facts import Fact
from examples.final_project.scraper.fetching import Fetcher
from examples.final_project.scraper.jobs import Job
from examples.final_project.scraper.ledger import Ledger
from examples.final_project.scraper.polite import Pace, Robots, Validators
from examples.final_project.scraper.reading import Again, Answer, Facts, Failure, GaveUp, Unchanged

WRITE_AGAIN_MS = 1_000
#: The reason for coming again when nothing was asked yet.
HELD_BACK = "the pace of the host"

log = logging.getLogger(__name__)


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
        #: How often each thing happened; for the log, the demo and tests.
        self.counts: Counter[str] = Counter()

    def attempt(self, job: Job, number: int = 1) -> Again | None:
        """Try the job; return when to try again, or None if the schedule says."""
        host = urlsplit(job.url).netloc
        now_ms = self._now_ms()
        if wait_ms := self._pace.wait_ms(host, now_ms):
            self.counts["held back"] += 1
            return Again(wait_ms, HELD_BACK)
        robots = self._robots_of(job, host, now_ms)
        if not robots.allows(job.url):
            self.counts["forbidden"] += 1
            log.warning("%s: robots.txt of %s does not allow %s", job.name, host, job.url)
            return None
        validators = self._validators.get(job.url, Validators())
        self._pace.asked(host, now_ms, robots.pace_ms)
        answer = self._fetcher.get(job.url, validators.headers())
        return self._follow(job, host, answer, number)

    def _robots_of(self, job: Job, host: str, now_ms: int) -> Robots:
        known = self._robots.get(host)
        if known is None or known.until_ms <= now_ms:
            answer = self._fetcher.get(f"{urlsplit(job.url).scheme}://{host}/robots.txt")
            known = _robots_in(answer, now_ms)
            self._robots[host] = known
        return known

    def _follow(self, job: Job, host: str, answer: Answer | Failure, number: int) -> Again | None:
        now_ms = self._now_ms()
        match reading.outcome(job, answer, number, now_ms, self._chance):
            case Facts(facts, validators):
                return self._write(job, facts, validators, now_ms)
            case Unchanged():
                self.counts["unchanged"] += 1
                return None
            case Again() as again:
                self.counts["again"] += 1
                log.info("%s: %s, again in %d ms", job.name, again.reason, again.wait_ms)
                if again.host_waits:
                    self._pace.hold(host, now_ms + again.wait_ms)
                return again
            case GaveUp(reason):
                self.counts["gave up"] += 1
                log.warning("%s: gave up after %d attempts: %s", job.name, number, reason)
                return None

    def _write(
        self, job: Job, facts: list[Fact], validators: Validators, now_ms: int
    ) -> Again | None:
        try:
            written = self._ledger.write(facts, now_ms)
        except KafkaException as error:
            self.counts["not written"] += 1
            log.warning("%s: not written, fetched again soon: %s", job.name, error)
            return Again(WRITE_AGAIN_MS, "not written")
        self._validators[job.url] = validators
        self.counts["fetched"] += 1
        self.counts["written"] += written
        return None


def number_after(again: Again, number: int) -> int:
    """Return the number of the next attempt; one that the pace held back was none."""
    return number if again.reason == HELD_BACK else number + 1


def _robots_in(answer: Answer | Failure, now_ms: int) -> Robots:
    if isinstance(answer, Failure):
        return polite.robots(None, "", now_ms)
    return polite.robots(answer.status, answer.body.decode(errors="replace"), now_ms)
