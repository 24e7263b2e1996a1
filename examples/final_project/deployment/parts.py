"""The parts of a deployment, in the order in which they start; the other way round they stop."""

import sys
from dataclasses import dataclass

from examples.final_project.place import Place
from examples.final_project.settings import Settings

MODULES = "examples.final_project"


@dataclass(frozen=True, slots=True)
class Part:
    """A program of the project."""

    name: str
    #: Which others it cannot work without.
    needs: tuple[str, ...] = ()
    #: What asks it to end in order, and how long that may take.
    stop_signal: str = "TERM"
    stop_seconds: int = 30
    #: Below it the topics are made and the database is migrated.
    after_preparation: bool = True

    def command(self, place: Place) -> list[str]:
        """Return the program with its arguments."""
        return [sys.executable, "-m", f"{MODULES}.{self.name}", "--dir", str(place.directory)]


SITE = Part("site", after_preparation=False)
BROKER = Part("broker", after_preparation=False)
#: TERM would have PostgreSQL wait until all clients have gone.
DATABASE = Part("database", stop_signal="INT", after_preparation=False)
PROCESSING = Part("processing", ("broker", "database"))
SCRAPER = Part("scraper", ("broker", "site"))
ARCHIVE = Part("archive", ("database",))
WATCH = Part("watch")
PARTS = (SITE, BROKER, DATABASE, PROCESSING, SCRAPER, ARCHIVE, WATCH)


def parts_of(settings: Settings) -> tuple[Part, ...]:
    """Return the parts that run here: a site and a database may be somebody else's."""
    others = {
        SITE: bool(settings.scraper.site),
        DATABASE: bool(settings.database.url),
    }
    return tuple(each for each in PARTS if not others.get(each, False))
