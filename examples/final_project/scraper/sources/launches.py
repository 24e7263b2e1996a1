"""A launch calendar: what is about to be launched, where from, and by whom.

The interface is that of Launch Library 2 (The Space Devs, https://ll.thespacedevs.com/docs, version
2.3.0), as it is published:

- `/launches/upcoming/?limit=100` answers with `count`, `next`, `previous` and `results`; `next` is
  the address of the next page, or null.
- Without a token there are 15 requests an hour. A token goes into the header `Authorization: Token
  ...`; it is kept in a file, and goes to no other host.
- Too many requests are answered by 429 with Retry-After, which holds back all jobs of the host.

A launch is known by its id. It is told again whenever something about it has changed, and
`last_updated` says when: the time of the fact.
"""

from pathlib import Path

from examples.final_project.scraper import jobs
from examples.final_project.scraper.jobs import Cron, Items, Job

ADDRESS = "https://ll.thespacedevs.com"
TOPIC = "launches"
PAGE_ITEMS = 100
#: 15 an hour, for those without a token.
PACE_MS = 240_000

LAUNCHES = Items(
    "results",
    {
        "launch": (("id",), jobs.text),
        "name": (("name",), jobs.text),
        "status": (("status", "abbrev"), jobs.text),
        "launches_at": (("net",), jobs.time),
        "provider": (("launch_service_provider", "name"), jobs.text),
        "rocket": (("rocket", "configuration", "full_name"), jobs.text),
        "pad": (("pad", "name"), jobs.text),
        "updated": (("last_updated",), jobs.time),
    },
    key="launch",
    identity=("launch",),
    at="updated",
    following="next",
)


def of(address: str = ADDRESS, token: Path | None = None, pace_ms: int = PACE_MS) -> Job:
    """Return the job for the calendar at an address, once an hour."""
    url = f"{address}/2.3.0/launches/upcoming/?limit={PAGE_ITEMS}&mode=normal"
    return Job("launches", url, TOPIC, LAUNCHES, Cron("7 * * * *"), pace_ms, token)
