"""The jobs on a real scheduler (PRJ-02); and each as a whole, for other schedulers."""

import threading
from collections import Counter
from datetime import UTC, datetime

import pytest
from apscheduler.events import EVENT_SCHEDULER_SHUTDOWN
from apscheduler.schedulers.background import BackgroundScheduler

from examples.final_project.scraper import jobs, polite
from examples.final_project.scraper.ledger import ReplacedError
from examples.final_project.scraper.once import NotScrapedError, follow
from examples.final_project.scraper.reading import Again
from examples.final_project.scraper.schedule import Schedule, trigger
from examples.final_project.scraper.scraper import HELD_BACK
from examples.final_project.scraper.sources.site import ROCKETS

PATIENCE_SECONDS = 30
HOURLY = jobs.Cron("0 * * * *")
JOB = jobs.Job("rockets", "http://site/rockets", "rockets", ROCKETS, HOURLY)


class FakeScraper:
    """Gives the answers it was made with, and notes the attempts."""

    def __init__(self, *answers):
        self._answers = list(answers)
        self.attempts = []
        self.counts = Counter()
        self.done = threading.Event()

    def attempt(self, _job, number=1):
        self.attempts.append(number)
        answer = self._answers.pop(0) if self._answers else None
        if not self._answers:
            self.done.set()
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def scheduler():
    made = BackgroundScheduler()
    yield made
    if made.running:
        made.shutdown()


def played(scheduler, scraper):
    schedule = Schedule(scheduler, scraper)
    schedule.add([JOB])
    scheduler.start()
    assert scraper.done.wait(PATIENCE_SECONDS)
    return scraper.attempts


def test_prj_02_jobs_are_due_by_interval_and_by_crontab():
    since = datetime(2030, 1, 1, 12, 30, tzinfo=UTC)
    hourly = trigger(HOURLY).get_next_fire_time(None, since)
    assert hourly == datetime(2030, 1, 1, 13, tzinfo=UTC)
    assert trigger(jobs.Every(5)).interval.total_seconds() == 5


def test_a_failed_attempt_is_made_again_before_the_schedule_says(scheduler):
    assert played(scheduler, FakeScraper(Again(1, "status 503"), None)) == [1, 2]


def test_an_attempt_that_the_pace_held_back_was_none(scheduler):
    assert played(scheduler, FakeScraper(Again(1, HELD_BACK), None)) == [1, 1]


def test_a_scraper_that_was_replaced_ends_its_schedule(scheduler):
    stopped = threading.Event()
    scheduler.add_listener(lambda _event: stopped.set(), EVENT_SCHEDULER_SHUTDOWN)
    played(scheduler, FakeScraper(ReplacedError("scraper")))
    assert stopped.wait(PATIENCE_SECONDS)


def test_a_whole_job_waits_as_it_is_told_and_ends_with_its_last_attempt():
    waits = []
    scraper = FakeScraper(Again(7, HELD_BACK), Again(500, "status 503"), None)
    follow(scraper, JOB, waits.append)
    assert scraper.attempts == [1, 1, 2]
    assert waits == [7, 500]


def test_a_whole_job_that_cannot_be_written_ends_with_the_reason():
    scraper = FakeScraper(*[Again(1, "not written")] * 10)
    with pytest.raises(NotScrapedError, match="rockets: not written, after 5 attempts"):
        follow(scraper, JOB, lambda _: None)
    assert len(scraper.attempts) == polite.ATTEMPTS_MAX


def test_a_whole_job_that_gave_up_has_failed():
    scraper = FakeScraper(None)
    scraper.counts["gave up"] = 1
    with pytest.raises(NotScrapedError, match="rockets: gave up"):
        follow(scraper, JOB, lambda _: None)
