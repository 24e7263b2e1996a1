"""A launch calendar that answers as Launch Library 2 says that it does, to be asked instead of it.

As its documentation has it: pages of at most 100 launches with the addresses of the next and the
previous one, a limit of requests for those without a token, 401 for a token that is none, 429 with
Retry-After, and last_updated on each launch. The launches are those of the site's seed.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from examples.final_project.site import flights

PATH = "/2.3.0/launches/upcoming/"
PAGE_ITEMS = 10
PAGE_ITEMS_MAX = 100
HOUR_MS = 3_600_000
#: So far ahead launches are announced.
AHEAD = 25


class Calendar:
    """The calendar at the times of a clock."""

    def __init__(
        self, seed: int, clock: Callable[[], int], token: str, requests_an_hour: int = 15
    ) -> None:
        self._seed = seed
        self._clock = clock
        self._token = token
        self._requests_an_hour = requests_an_hour
        self._asked: list[int] = []
        #: What each request said of who asks.
        self.authorisations: list[str | None] = []
        self.app = Starlette(routes=[Route(PATH, self._upcoming)])

    async def _upcoming(self, request: Request) -> Response:
        given = request.headers.get("authorization")
        self.authorisations.append(given)
        if given is not None and given != f"Token {self._token}":
            return JSONResponse({"detail": "Invalid token."}, status_code=401)
        if given is None and (wait_s := self._throttled_s()):
            detail = f"Request was throttled. Expected available in {wait_s} seconds."
            headers = {"Retry-After": str(wait_s)}
            return JSONResponse({"detail": detail}, status_code=429, headers=headers)
        limit = min(int(request.query_params.get("limit", PAGE_ITEMS)), PAGE_ITEMS_MAX)
        offset = int(request.query_params.get("offset", 0))
        return JSONResponse(self._page(str(request.url), limit, offset))

    def _throttled_s(self) -> int:
        """Return how long somebody without a token has to wait; 0 is not at all."""
        now_ms = self._clock()
        self._asked = [at_ms for at_ms in self._asked if at_ms > now_ms - HOUR_MS]
        if len(self._asked) >= self._requests_an_hour:
            return 1 + (self._asked[0] + HOUR_MS - now_ms) // 1000
        self._asked.append(now_ms)
        return 0

    def _page(self, url: str, limit: int, offset: int) -> dict[str, Any]:
        launches = self.launches()
        address = url.partition("?")[0]

        def at(begin: int) -> str | None:
            inside = 0 <= begin < len(launches)
            return f"{address}?limit={limit}&offset={begin}" if inside else None

        return {
            "count": len(launches),
            "next": at(offset + limit),
            "previous": at(offset - limit) if offset else None,
            "results": launches[offset : offset + limit],
        }

    def launches(self) -> list[dict[str, Any]]:
        """Return all that is announced now."""
        now_ms = self._clock()
        first = now_ms // flights.FLIGHT_EVERY_MS + 1
        return [self._launch(number, now_ms) for number in range(first, first + AHEAD)]

    def _launch(self, number: int, now_ms: int) -> dict[str, Any]:
        flight = flights.flight(self._seed, number)
        maker = next(each.maker for each in flights.ROCKETS if each.name == flight.rocket)
        # A launch is to be determined until it is near; then it is told anew, with another time.
        near_ms = flight.launch_ms - flights.ANNOUNCED_MS
        is_near = now_ms >= near_ms
        return {
            "id": f"{self._seed:08x}-{number:012x}",
            "name": f"{flight.rocket} | {flight.name}",
            "status": {"id": 1, "name": "Go", "abbrev": "Go" if is_near else "TBD"},
            "net": _time(flight.launch_ms),
            "last_updated": _time(near_ms if is_near else near_ms - HOUR_MS),
            "launch_service_provider": {"id": 1, "name": maker},
            "rocket": {"configuration": {"full_name": flight.rocket}},
            "pad": {"name": flight.pad},
        }


def _time(at_ms: int) -> str:
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")
