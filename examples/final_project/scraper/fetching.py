"""One HTTP request with limits: so many bytes, so many seconds, whatever the server does."""

import zlib
from collections.abc import Callable, Iterator, Mapping

import httpx

from examples.final_project.scraper.deadline import Deadline, Transport
from examples.final_project.scraper.polite import AGENT, REDIRECTS_MAX
from examples.final_project.scraper.reading import Answer, Failure

BODY_BYTES_MAX = 2_000_000
#: For the whole of an answer: a server that sends a byte a second is cut off.
ANSWER_MS_MAX = 10_000
SILENCE_S_MAX = 5.0
#: What is unpacked in one go: a few bytes of gzip may stand for a thousand times as many.
UNPACKED_BYTES_MAX = 65_536
GZIP = ("gzip", "x-gzip")
GZIP_ONLY = 16 + zlib.MAX_WBITS


class Fetcher:
    """Asks servers, one at a time; connections are kept."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._deadline = Deadline(now_ms)
        self._client = httpx.Client(
            headers={"User-Agent": AGENT, "Accept-Encoding": "gzip"},
            timeout=SILENCE_S_MAX,
            transport=Transport(self._deadline),
            trust_env=False,
        )

    def get(
        self, url: str, headers: Mapping[str, str] | None = None, *, follow: bool = False
    ) -> Answer | Failure:
        """Return the answer, cut where it is too long, or why there is none.

        Where a page has moved to is not asked of itself: robots.txt may not allow it.
        """
        self._deadline.begin(ANSWER_MS_MAX)
        try:
            for _ in range(1 + REDIRECTS_MAX):
                with self._client.stream("GET", url, headers=headers) as response:
                    if not follow or response.next_request is None:
                        return _received(response)
                    url = str(response.next_request.url)
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError, zlib.error) as error:
            return Failure(f"{type(error).__name__}: {error}")
        return Failure(f"more than {REDIRECTS_MAX} redirects")

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def _received(response: httpx.Response) -> Answer:
    body = bytearray()
    for chunk in _unpacked(response):
        body += chunk
        if len(body) > BODY_BYTES_MAX:
            del body[BODY_BYTES_MAX:]
            return Answer(response.status_code, response.headers, bytes(body), cut=True)
    return Answer(response.status_code, response.headers, bytes(body))


def _unpacked(response: httpx.Response) -> Iterator[bytes]:
    """Yield the body, little at a time; httpx would unpack all that a few bytes stand for."""
    coding = response.headers.get("content-encoding", "").strip().lower()
    if coding in ("", "identity"):
        yield from response.iter_raw()
    elif coding in GZIP:
        gzip = zlib.decompressobj(GZIP_ONLY)
        for chunk in response.iter_raw():
            while chunk:
                yield gzip.decompress(chunk, UNPACKED_BYTES_MAX)
                chunk = gzip.unconsumed_tail
        if not gzip.eof:
            raise httpx.DecodingError("the body ends before what is packed in it does")
    else:
        raise httpx.DecodingError(f"the body is packed as '{coding}', which nobody asked for")
