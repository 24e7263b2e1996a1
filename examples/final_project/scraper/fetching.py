"""One HTTP request with limits: so many bytes, so many seconds, whatever the server does."""

from collections.abc import Callable, Mapping

import httpx

from examples.final_project.scraper.polite import AGENT
from examples.final_project.scraper.reading import Answer, Failure

BODY_BYTES_MAX = 2_000_000
#: For the whole of an answer: a server that sends a byte a second is cut off.
ANSWER_MS_MAX = 10_000
SILENCE_S_MAX = 5.0


class Fetcher:
    """Asks servers, one at a time; connections are kept."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._client = httpx.Client(
            headers={"User-Agent": AGENT},
            timeout=SILENCE_S_MAX,
            trust_env=False,
        )

    def get(
        self, url: str, headers: Mapping[str, str] | None = None, *, follow: bool = False
    ) -> Answer | Failure:
        """Return the answer, cut where it is too long, or why there is none.

        Where a page has moved to is not asked of itself: robots.txt may not allow it.
        """
        try:
            with self._client.stream(
                "GET", url, headers=headers, follow_redirects=follow
            ) as response:
                return self._received(response)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return Failure(f"{type(error).__name__}: {error}")

    def _received(self, response: httpx.Response) -> Answer | Failure:
        until_ms = self._now_ms() + ANSWER_MS_MAX
        body = bytearray()
        for chunk in response.iter_bytes():
            body += chunk
            if len(body) > BODY_BYTES_MAX:
                del body[BODY_BYTES_MAX:]
                return Answer(response.status_code, response.headers, bytes(body), cut=True)
            if self._now_ms() > until_ms:
                return Failure("the answer took too long")
        return Answer(response.status_code, response.headers, bytes(body))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
