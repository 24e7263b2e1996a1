"""The rocket flights that the site tells of: a function of a seed and the time.

Nothing is stored. Flight number n lifts off at `n * FLIGHT_EVERY_MS`; all that is ever said of it
follows from the seed and n. So two sites with one seed say the same at the same time, and a test
can ask what must have been scraped.
"""

from dataclasses import dataclass
from enum import StrEnum
from random import Random

FLIGHT_EVERY_MS = 20_000
FLIGHT_MS = 120_000
ANNOUNCED_MS = 60_000
#: How long a flight stays on the board after its end.
REMEMBERED_MS = 60_000
MEASURE_EVERY_MS = 2_000
#: How far back the page with measurements goes.
MEASUREMENTS_SHOWN_MS = 20_000
ASCENT_MS = 60_000
SCRUBBED_SHARE = 0.1
#: The share of flights whose engine runs hot for a while.
HOT_SHARE = 0.2
HOT_MS = 10_000
HOT_EXTRA_CELSIUS = 900.0


class Status(StrEnum):
    """Where a flight stands."""

    SCHEDULED = "scheduled"
    SCRUBBED = "scrubbed"
    ASCENT = "ascent"
    ORBIT = "orbit"
    LANDED = "landed"


@dataclass(frozen=True, slots=True)
class Rocket:
    """A type of rocket."""

    name: str
    maker: str
    stages: int
    payload_kg: int


@dataclass(frozen=True, slots=True)
class Astronaut:
    """One who may command a flight."""

    name: str
    nation: str
    born: int


@dataclass(frozen=True, slots=True)
class Flight:
    """One flight, as planned."""

    number: int
    rocket: str
    pad: str
    commander: str
    launch_ms: int
    scrubbed: bool

    @property
    def name(self) -> str:
        """Return the flight's name, which is also the key of all that is said of it."""
        return f"F-{self.number}"


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a rocket told at one moment."""

    flight: str
    at_ms: int
    altitude_m: float
    speed_ms: float
    fuel_percent: float
    engine_celsius: float


ROCKETS = (
    Rocket("Aurora 3", "Nordlicht", 3, 8_500),
    Rocket("Kondor", "Anden Aeroespacial", 2, 12_000),
    Rocket("Long Breath", "Ridge and Sons", 2, 4_200),
    Rocket("Saturnia", "Officine Vega", 3, 22_000),
)
ASTRONAUTS = (
    Astronaut("Ada Brandt", "DE", 1984),
    Astronaut("Chidi Okafor", "NG", 1979),
    Astronaut("Lucía Paz", "AR", 1990),
    Astronaut("Mei Tanaka", "JP", 1987),
    Astronaut("Sven O'Hara", "IE", 1975),
)
PADS = ("Kourou 1", "Kourou 2", "Andøya")


def flight(seed: int, number: int) -> Flight:
    """Return a flight by its number."""
    chance = Random(f"{seed}/{number}")
    return Flight(
        number,
        chance.choice(ROCKETS).name,
        chance.choice(PADS),
        chance.choice(ASTRONAUTS).name,
        number * FLIGHT_EVERY_MS,
        chance.random() < SCRUBBED_SHARE,
    )


def board(seed: int, now_ms: int) -> list[Flight]:
    """Return the flights that are on the board now, the oldest first."""
    oldest = (now_ms - FLIGHT_MS - REMEMBERED_MS) // FLIGHT_EVERY_MS + 1
    newest = (now_ms + ANNOUNCED_MS) // FLIGHT_EVERY_MS
    return [flight(seed, number) for number in range(oldest, newest + 1)]


def status(each: Flight, now_ms: int) -> tuple[Status, int]:
    """Return where a flight stands now, and since when."""
    since_launch_ms = now_ms - each.launch_ms
    if since_launch_ms < 0:
        return Status.SCHEDULED, each.launch_ms - ANNOUNCED_MS
    if each.scrubbed:
        return Status.SCRUBBED, each.launch_ms
    if since_launch_ms < ASCENT_MS:
        return Status.ASCENT, each.launch_ms
    if since_launch_ms < FLIGHT_MS:
        return Status.ORBIT, each.launch_ms + ASCENT_MS
    return Status.LANDED, each.launch_ms + FLIGHT_MS


def measurement(seed: int, each: Flight, at_ms: int) -> Measurement:
    """Return what the rocket told at that moment of its flight."""
    chance = Random(f"{seed}/{each.number}/{at_ms}")
    passed = (at_ms - each.launch_ms) / FLIGHT_MS
    climbed = min(1.0, 2 * passed)
    return Measurement(
        each.name,
        at_ms,
        round(400_000 * climbed**2 + chance.uniform(-50, 50), 1),
        round(7_700 * climbed + chance.uniform(-5, 5), 2),
        round(100 * (1 - 0.8 * climbed), 2),
        round(2_400 + chance.gauss(0, 40) + _hot(seed, each, at_ms), 1),
    )


def measurements(seed: int, since_ms: int, until_ms: int) -> list[Measurement]:
    """Return what all rockets in the air told in `since_ms < t <= until_ms`, by time."""
    first = since_ms // MEASURE_EVERY_MS + 1
    times = range(first * MEASURE_EVERY_MS, until_ms + 1, MEASURE_EVERY_MS)
    return [
        measurement(seed, each, at_ms)
        for at_ms in times
        for each in board(seed, at_ms)
        if not each.scrubbed and 0 <= at_ms - each.launch_ms < FLIGHT_MS
    ]


def _hot(seed: int, each: Flight, at_ms: int) -> float:
    chance = Random(f"{seed}/{each.number}/hot")
    if chance.random() >= HOT_SHARE:
        return 0.0
    began_ms = each.launch_ms + chance.uniform(0, FLIGHT_MS - HOT_MS)
    return HOT_EXTRA_CELSIUS if began_ms <= at_ms < began_ms + HOT_MS else 0.0
