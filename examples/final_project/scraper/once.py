"""One job from its first attempt to its end: for schedulers that start a process for each run.

Nothing is remembered from run to run but what is in the topics, so a page is read whole each time,
and what is new in it is written. Each job has a name of its own as a writer: a run that is killed
is followed by one that ends what was left undone, and jobs do not shut each other out.
"""

import time
from collections.abc import Callable
from random import Random

from examples.final_project.scraper import polite, topics
from examples.final_project.scraper.fetching import Fetcher
from examples.final_project.scraper.jobs import Job
from examples.final_project.scraper.ledger import Ledger
from examples.final_project.scraper.reading import DEAD_LETTERS
from examples.final_project.scraper.scraper import Scraper, number_after

#: What counts as a failed run.
FAILURES = ("gave up", "forbidden")


class NotScrapedError(Exception):
    """The page could not be had, or what it said could not be written; the text says which."""


def run(job: Job, bootstrap: str, chance: Random) -> dict[str, int]:
    """Run a job; return how often each thing happened."""
    topics.create(bootstrap)
    fetcher = Fetcher(_now_ms)
    try:
        ledger = Ledger(bootstrap, f"final-project-{job.name}", [job.topic, DEAD_LETTERS])
        scraper = Scraper(fetcher, ledger, _now_ms, chance)
        follow(scraper, job, lambda wait_ms: time.sleep(wait_ms / 1000))
    finally:
        fetcher.close()
    return dict(scraper.counts)


def follow(scraper: Scraper, job: Job, wait: Callable[[int], None]) -> None:
    """Attempt a job until it is done; raise if it came to nothing."""
    number = 1
    while (again := scraper.attempt(job, number)) is not None:
        number = number_after(again, number)
        if number > polite.ATTEMPTS_MAX:
            raise NotScrapedError(f"{job.name}: {again.reason}, after {number - 1} attempts")
        wait(again.wait_ms)
    for failure in FAILURES:
        if scraper.counts[failure]:
            raise NotScrapedError(f"{job.name}: {failure}; the log says why")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
