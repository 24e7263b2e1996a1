"""The scraper as a program, with its own scheduler.

python -m examples.final_project.scraper [--dir DIR]

It creates the topics that are missing, and goes on where the topics say. Its pulse counts what came
of all attempts.
"""

from random import Random

from apscheduler.events import EVENT_JOB_EXECUTED
from apscheduler.schedulers.background import BackgroundScheduler
from confluent_kafka import KafkaException

from examples.final_project.part import Part, asked_to_end, begin, fail, parser_of
from examples.final_project.scraper import topics
from examples.final_project.scraper.fetching import Fetcher
from examples.final_project.scraper.ledger import Ledger
from examples.final_project.scraper.schedule import Schedule
from examples.final_project.scraper.scraper import Scraper
from examples.final_project.scraper.sources import brokers, launches, site
from strom.broker.host import wall_clock_ms

NAME = "final-project-scraper"
BROKER = "broker-1"
LOOK_SECONDS = 1.0


def main() -> None:
    """Scrape until asked to end, or until another scraper has taken over."""
    options = parser_of("scraper", "Scrapes the site and the broker's metrics.").parse_args()
    part = begin("scraper", options.dir)
    asked = asked_to_end()
    bootstrap = part.settings.broker.bootstrap
    try:
        topics.create(bootstrap)
    except KafkaException as error:
        fail(f"the broker at {bootstrap} has no topics for us: {error.args[0].str()}")
    fetcher = Fetcher(wall_clock_ms)
    ledger = Ledger(bootstrap, NAME, list(topics.SETTINGS))
    scraper = Scraper(fetcher, ledger, wall_clock_ms, Random())
    scheduler = scheduled(part, scraper)
    part.pulse(scraper.counts)
    scheduler.start()
    while not asked.wait(LOOK_SECONDS):
        if not scheduler.running:
            fail("another scraper has taken over")
    # Not to wait: it would hold the lock that a job needs to ask for another attempt.
    scheduler.shutdown(wait=False)


def scheduled(part: Part, scraper: Scraper) -> BackgroundScheduler:
    """Return the scheduler of all jobs, not yet begun; each attempt is a beat of the pulse."""
    scheduler = BackgroundScheduler()
    work = site.of(part.settings.scraped_site)
    work.append(brokers.of(BROKER, part.settings.scraped_metrics))
    if address := part.settings.scraper.launches:
        work.append(launches.of(address, part.place.launches_token))
    Schedule(scheduler, scraper).add(work)
    scheduler.add_listener(lambda _event: part.pulse(scraper.counts), EVENT_JOB_EXECUTED)
    return scheduler


if __name__ == "__main__":
    main()
