"""The jobs on APScheduler: by interval, by crontab line, and once more after a failure.

One worker runs them all, one after the other; a slow host delays the others by the limit of an
answer at most. A job whose time comes while it waits is run once, not twice.
"""

import logging
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from apscheduler.executors.pool import ThreadPoolExecutor as Workers
from apscheduler.schedulers.base import BaseScheduler
from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.date import DateTrigger
from apscheduler.triggers.interval import IntervalTrigger

from examples.final_project.scraper.jobs import Cron, Every, Job
from examples.final_project.scraper.ledger import ReplacedError
from examples.final_project.scraper.scraper import Scraper, number_after

log = logging.getLogger(__name__)


def trigger(when: Every | Cron) -> BaseTrigger:
    """Return APScheduler's trigger for when a job is due."""
    match when:
        case Every(seconds):
            return IntervalTrigger(seconds=seconds, timezone=UTC)
        case Cron(line):
            return CronTrigger.from_crontab(line, timezone=UTC)


class Schedule:
    """Runs a scraper's jobs when they are due, the first time at once."""

    def __init__(self, scheduler: BaseScheduler, scraper: Scraper) -> None:
        self._scheduler = scheduler
        self._scraper = scraper
        # One worker: the scraper's state belongs to one thread.
        scheduler.configure(
            executors={"default": Workers(1)},
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
            timezone=UTC,
        )

    def add(self, jobs: Iterable[Job]) -> None:
        """Take the jobs in."""
        for job in jobs:
            self._scheduler.add_job(
                self._run,
                trigger(job.when),
                [job],
                id=job.name,
                next_run_time=datetime.now(UTC),
                replace_existing=True,
            )

    def _run(self, job: Job, number: int = 1) -> None:
        try:
            again = self._scraper.attempt(job, number)
        except ReplacedError:
            log.warning("another scraper has taken over; this one ends")
            self._scheduler.shutdown(wait=False)
            return
        if again is not None:
            at = datetime.now(UTC) + timedelta(milliseconds=again.wait_ms)
            self._scheduler.add_job(
                self._run,
                DateTrigger(at),
                [job, number_after(again, number)],
                id=f"{job.name} again",
                replace_existing=True,
            )
