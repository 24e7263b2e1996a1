"""The site as an HTTP service: conditional requests, robots.txt, and the moods of real sites.

What goes wrong is decided by a function from the number of the request to a `Fault`, so a site
misbehaves the same way each time it is started.
"""

from collections.abc import Callable
from email.utils import formatdate, parsedate_to_datetime
from enum import Enum, auto
from random import Random

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from examples.final_project.site import pages
from examples.final_project.site.pages import Page

RETRY_AFTER_S = 1
HUGE_BYTES = 8_000_000


class Fault(Enum):
    """What may go wrong with an answer."""

    TOO_MANY = auto()
    UNAVAILABLE = auto()
    TRUNCATED = auto()
    NEW_LAYOUT = auto()
    WRONG_TYPE = auto()
    HUGE = auto()


Faults = Callable[[int], Fault | None]


def no_faults(_request: int) -> None:
    """Let every request be answered well."""


def some_faults(seed: int, share: float = 0.1) -> Faults:
    """Return faults for that share of all requests."""

    def of(request: int) -> Fault | None:
        chance = Random(f"{seed}/fault/{request}")
        return chance.choice(list(Fault)) if chance.random() < share else None

    return of


class Site:
    """The pages at the times of a clock, and how many requests there were."""

    def __init__(self, seed: int, clock: Callable[[], int], faults: Faults = no_faults) -> None:
        self._seed = seed
        self._clock = clock
        self._faults = faults
        self.requests = 0
        self.app = Starlette(
            routes=[
                Route("/robots.txt", _robots),
                Route("/private/{path:path}", _private),
                *(Route(path, self._page) for path in pages.PAGES),
            ]
        )

    async def _page(self, request: Request) -> Response:
        self.requests += 1
        fault = self._faults(self.requests)
        page = pages.PAGES[request.url.path](self._seed, self._clock())
        if fault is not None:
            return _spoiled(page, fault)
        headers = {
            "ETag": page.etag,
            "Last-Modified": formatdate(page.changed_ms / 1000, usegmt=True),
            "Cache-Control": "no-cache",
        }
        if _is_known(request, page):
            return Response(status_code=304, headers=headers)
        return Response(page.html, media_type="text/html", headers=headers)


async def _robots(_request: Request) -> Response:
    return PlainTextResponse(pages.ROBOTS)


async def _private(_request: Request) -> Response:
    return PlainTextResponse("you should not have come here")


def _is_known(request: Request, page: Page) -> bool:
    """Return whether the client has the page; the tag goes before the time (RFC 9110, 13.1.3)."""
    if (tags := request.headers.get("if-none-match")) is not None:
        return page.etag in [tag.strip() for tag in tags.split(",")]
    if (since := request.headers.get("if-modified-since")) is None:
        return False
    try:
        return page.changed_ms // 1000 <= parsedate_to_datetime(since).timestamp()
    except ValueError:
        return False


def _spoiled(page: Page, fault: Fault) -> Response:
    match fault:
        case Fault.TOO_MANY:
            headers = {"Retry-After": str(RETRY_AFTER_S)}
            return PlainTextResponse("slowly, please", status_code=429, headers=headers)
        case Fault.UNAVAILABLE:
            return PlainTextResponse("back soon", status_code=503)
        case Fault.TRUNCATED:
            return _html(page.html[: len(page.html) * 2 // 3])
        case Fault.NEW_LAYOUT:
            return _html(page.html.replace("<th>", "<th>the "))
        case Fault.WRONG_TYPE:
            return _html(page.html.replace("<td>", "<td>~", 3))
        case Fault.HUGE:
            return _html(page.html + " " * HUGE_BYTES)


def _html(text: str) -> Response:
    return Response(text, media_type="text/html")
