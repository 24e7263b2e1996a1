"""The final project from start to end, with a crash on the way.

python -m examples.final_project.demo [--seconds 20] [--plot FILE] [--database URL] [--keep]
"""

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NoReturn

import psycopg
from confluent_kafka.admin import AdminClient
from rich.console import Console
from rich.table import Table

from examples.final_project import archive, counting
from examples.final_project.database.addresses import READER, acting_as, of_place, shown
from examples.final_project.database.migrate import migrate
from examples.final_project.demo import showing
from examples.final_project.demo.processes import NotReadyError, Running, Stage, running
from examples.final_project.deployment.parts import BROKER, DATABASE, PROCESSING, SCRAPER, SITE
from examples.final_project.place import Place
from examples.final_project.processing.queries import GROUP, QUERIES
from examples.final_project.scraper import topics

TELL_EVERY_SECONDS = 5.0
FIRST_SECONDS_MAX = 180.0
AGREE_SECONDS_MAX = 180.0
STORED = "SELECT (SELECT count(*) FROM flights.telemetry), (SELECT count(*) FROM flights.anomaly)"

console = Console()


class Demo:
    """All parts, running."""

    def __init__(self, stage: Stage, scraper: Running) -> None:
        self.bootstrap = stage.settings.broker.bootstrap
        self.reader = acting_as(of_place(stage.place, stage.settings), READER)
        self.archive = stage.place.archive
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 2})
        self.scraper = scraper
        self.processing = Running(PROCESSING, stage)

    def watch(self, seconds: float) -> None:
        """Tell how it goes for a while."""
        until = time.perf_counter() + seconds
        while (left := until - time.perf_counter()) > 0:
            time.sleep(min(left, TELL_EVERY_SECONDS))
            self.processing.check()
            self.tell()

    def watch_first(self) -> None:
        """Wait until something is stored: a crash before that would show nothing."""
        until = time.perf_counter() + FIRST_SECONDS_MAX
        while not showing.ask(self.reader, STORED)[0][0]:
            if time.perf_counter() > until:
                raise NotReadyError("Spark stored nothing")
            self.watch(TELL_EVERY_SECONDS)

    def tell(self) -> None:
        """Say how many facts were written, stored, and are in between."""
        measured, odd = showing.ask(self.reader, STORED)[0]
        lags = self.lags()
        behind = ", ".join(f"{name} {'-' if n is None else n}" for name, n in lags.items())
        facts = self.scraper.counts().get("written", 0)
        console.print(
            f"  {facts:,} facts scraped · {measured:,} measurements and {odd} anomalies stored · "
            f"lag: {behind}",
            highlight=False,
            soft_wrap=True,
        )

    def lags(self) -> dict[str, int | None]:
        """Return how far each query is behind."""
        return {name: counting.lag(self.admin, name) for name in QUERIES}

    def agree(self) -> bool:
        """Wait until all that was sent is stored; show both, and whether they are the same."""
        until = time.perf_counter() + AGREE_SECONDS_MAX
        while True:
            found = counting.agreements(self.bootstrap, self.reader)
            lags = self.lags()
            holds = all(each.holds for each in found) and not any(n != 0 for n in lags.values())
            if holds or time.perf_counter() > until:
                break
            self.processing.check()
            time.sleep(1)
        show_lags(lags)
        show_agreements(found)
        return holds

    def archived(self) -> bool:
        """Archive each day; show the same figures from both, and whether they are the same."""
        for day in archive.days(self.reader):
            archive.archive_day(self.reader, day, self.archive)
        stored, archived = archive.stored(self.reader), archive.archived(self.archive)
        show_archive(stored, archived)
        return stored == archived


def say(text: str) -> None:
    """Tell the audience what happens."""
    console.print(f"\n[bold]▸[/bold] {text}", soft_wrap=True)


def show_lags(lags: dict[str, int | None]) -> None:
    """Show each query as the consumer group it is."""
    table = Table(title="The queries as consumer groups", title_justify="left")
    for head in ("Group", "Topic", "Lag"):
        table.add_column(head, justify="right" if head == "Lag" else "left")
    for name, behind in lags.items():
        table.add_row(GROUP + name, QUERIES[name], str(behind))
    console.print(table)


def show_agreements(found: list[counting.Agreement]) -> None:
    """Show what was sent beside what was stored."""
    table = Table(title="Sent and stored", title_justify="left")
    for head in ("What", "Sent", "Stored", ""):
        table.add_column(head, justify="left" if head in ("What", "") else "right")
    for each in found:
        same = "the same" if each.holds else "NOT the same"
        table.add_row(each.what, f"{each.sent:,}", f"{each.stored:,}", same)
    console.print(table)


def show_archive(stored: archive.Figures, archived: archive.Figures) -> None:
    """Show the figures of the database beside those of the archive."""
    table = Table(title="Database and archive", title_justify="left")
    for head in ("What", "PostgreSQL", "Parquet, by DuckDB"):
        table.add_column(head, justify="left" if head == "What" else "right")
    whats = ("measurements", "flights measured", "hottest engine, °C")
    for what, one, other in zip(whats, stored, archived, strict=True):
        table.add_row(what, f"{one:,.0f}", f"{other:,.0f}")
    console.print(table)


def require_empty(url: str) -> None:
    """See that a migrated database has nothing in it of other topics."""
    if showing.ask(url, "SELECT FROM flights.sink_progress LIMIT 1"):
        # What is stored of other topics can neither be compared with these nor go on with them.
        raise NotReadyError("The database holds what came from other topics: name an empty one")


@contextmanager
def raised(given: str | None) -> Iterator[Demo]:
    """Start everything but Spark; end everything, Spark too."""
    with ExitStack() as parts:
        # What was killed may still be writing.
        made = tempfile.TemporaryDirectory(prefix="strom-project-", ignore_cleanup_errors=True)
        directory = Path(parts.enter_context(made))
        # PostgreSQL does not run as root: who runs it then has to reach his own directory.
        directory.chmod(0o755)
        stage = Stage(Place(directory), given)
        parts.enter_context(running(BROKER, stage))
        bootstrap = stage.settings.broker.bootstrap
        topics.create(bootstrap)
        say(f"A broker serves at {bootstrap}, with {len(topics.SETTINGS)} topics.")
        if given is None:
            parts.enter_context(running(DATABASE, stage))
        url = of_place(stage.place, stage.settings)
        done = migrate(url)
        say(f"PostgreSQL serves at {shown(url)}; {len(done)} migrations were run.")
        require_empty(url)
        parts.enter_context(running(SITE, stage))
        demo = Demo(stage, parts.enter_context(running(SCRAPER, stage)))
        parts.callback(demo.processing.kill)
        say(
            f"A site of rocket flights is at {stage.settings.site.url}; a tenth of its answers is "
            "bad. The scraper is at it."
        )
        yield demo


def play(demo: Demo, seconds: float, plot: Path) -> bool:
    """Play all acts; return whether what was sent and what is stored are the same."""
    say(
        "Spark starts: four queries read the topics. Rows are stored once its workers are warm; "
        "the lag of a query is what it has not read yet."
    )
    demo.processing.start()
    demo.watch_first()
    demo.watch(seconds)
    demo.processing.kill()
    say("Spark was killed (SIGKILL), in the middle of whatever it did. The scraper goes on.")
    demo.processing.start()
    say("Spark runs again; each query goes on where its checkpoint says.")
    demo.watch(seconds)
    demo.scraper.stop()
    say("The scraper pauses, so that there is an end to count to.")
    holds = demo.agree()
    say(
        "What is stored goes to the archive too, a Parquet file for each day, and is counted there."
    )
    holds &= demo.archived()
    console.print(showing.metrics_table(demo.reader))
    console.print(showing.flights_table(demo.reader))
    showing.show_chart(console, demo.reader)
    showing.draw(demo.reader, plot)
    say(f"The curves of all flights are in {plot}.")
    return holds


def stay(demo: Demo) -> None:
    """Go on until somebody ends it."""
    demo.scraper.start()
    told = f"It goes on. Brokers: {demo.bootstrap}; database: {shown(demo.reader)}. Ctrl+C ends it."
    with suppress(KeyboardInterrupt):
        # Whoever reads it may end it at once.
        say(told)
        while True:
            demo.watch(TELL_EVERY_SECONDS)


def main() -> int:
    """Play the demo; 0 if the counts agree."""
    parser = argparse.ArgumentParser(description="The final project, from site to database.")
    parser.add_argument("--seconds", type=float, default=20.0, help="before and after the crash")
    parser.add_argument("--plot", type=Path, default=Path("final-project.png"))
    parser.add_argument("--keep", action="store_true", help="leave it running")
    parser.add_argument(
        "--database", metavar="URL", help="an empty one, instead of a server of our own"
    )
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, interrupted)
    began = time.perf_counter()
    try:
        with raised(options.database) as demo:
            holds = play(demo, options.seconds, options.plot)
            took = time.perf_counter() - began
            same = "Nothing was lost and nothing doubled" if holds else "The counts do NOT agree"
            say(f"{same}: one crash on the way, {took:.0f} s in all.")
            if options.keep:
                stay(demo)
            return 0 if holds else 1
    except (NotReadyError, psycopg.OperationalError) as error:
        console.print(str(error), style="red", markup=False)
        return 1
    except KeyboardInterrupt:
        return 130


def interrupted(_number: int, _frame: object) -> NoReturn:
    """End as Ctrl+C does."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
