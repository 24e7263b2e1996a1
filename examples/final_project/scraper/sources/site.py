"""The web site of rocket flights: four pages, each a table with an id.

Its rules are those of its robots.txt. Where flights stand and what they measure changes by the
second; the master data hardly ever does, and is asked for by the minute so that a demo shows it.
"""

from examples.final_project.scraper import jobs
from examples.final_project.scraper.jobs import Cron, Every, Job

BOARD = jobs.Table(
    "flights",
    {
        "flight": ("flight", jobs.text),
        "rocket": ("rocket", jobs.text),
        "pad": ("pad", jobs.text),
        "commander": ("commander", jobs.text),
        "launch": ("launch", jobs.time),
        "status": ("status", jobs.text),
        "since": ("since", jobs.time),
    },
    key="flight",
    identity=("flight",),
    at="since",
)
TELEMETRY = jobs.Table(
    "telemetry",
    {
        "flight": ("flight", jobs.text),
        "time": ("time", jobs.time),
        "altitude m": ("altitude_m", jobs.number),
        "speed m/s": ("speed_ms", jobs.number),
        "fuel %": ("fuel_percent", jobs.number),
        "engine °C": ("engine_celsius", jobs.number),
    },
    key="flight",
    identity=("flight", "time"),
    at="time",
)
ROCKETS = jobs.Table(
    "rockets",
    {
        "rocket": ("rocket", jobs.text),
        "maker": ("maker", jobs.text),
        "stages": ("stages", int),
        "payload kg": ("payload_kg", int),
    },
    key="rocket",
    identity=("rocket",),
)
ASTRONAUTS = jobs.Table(
    "astronauts",
    {"astronaut": ("astronaut", jobs.text), "nation": ("nation", jobs.text), "born": ("born", int)},
    key="astronaut",
    identity=("astronaut",),
)


def of(address: str) -> list[Job]:
    """Return the jobs for the site at an address."""
    return [
        Job("flights", f"{address}/flights", "flights", BOARD, Every(5)),
        Job("telemetry", f"{address}/telemetry", "telemetry", TELEMETRY, Every(2)),
        Job("rockets", f"{address}/rockets", "rockets", ROCKETS, Cron("* * * * *")),
        Job("astronauts", f"{address}/astronauts", "astronauts", ASTRONAUTS, Cron("* * * * *")),
    ]
