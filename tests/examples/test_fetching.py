"""One request to servers that do what no server should (PRJ-02)."""

import gzip
import socket
import threading
from contextlib import contextmanager, suppress
from itertools import chain, repeat

import pytest

from examples.final_project.scraper.fetching import ANSWER_MS_MAX, BODY_BYTES_MAX, Fetcher
from examples.final_project.scraper.polite import REDIRECTS_MAX
from examples.final_project.scraper.reading import Failure
from strom.testing.clock import FakeClock

pytestmark = pytest.mark.slow

PATIENCE_SECONDS = 30
ENDLESS = repeat(b"x" * 65_536)


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def fetcher(clock):
    made = Fetcher(clock)
    yield made
    made.close()


class Server:
    """A port that answers each connection by the next of some scripts, a piece after the other."""

    def __init__(self, *scripts):
        self._scripts = scripts
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(PATIENCE_SECONDS)
        self.port = self._socket.getsockname()[1]

    def serve(self):
        with suppress(OSError):
            for script in self._scripts:
                connection, _ = self._socket.accept()
                with connection, suppress(ConnectionError, TimeoutError):
                    connection.settimeout(PATIENCE_SECONDS)
                    connection.recv(65_536)
                    for piece in script:
                        connection.sendall(piece)

    def close(self):
        # Who waits for a connection is woken by this, not by closing alone.
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@contextmanager
def served(*scripts):
    server = Server(*scripts)
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.close()
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()


def head(status="200 OK", **headers):
    lines = [f"HTTP/1.1 {status}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


#: Longer than an answer may take, at a byte a second.
LONG = "x" * (2 * ANSWER_MS_MAX // 1000)


def slowly(data, clock):
    """A byte each second, by the fetcher's clock."""
    for index in range(len(data)):
        clock.advance(1000)
        yield data[index : index + 1]


def test_an_answer_comes_as_it_is(fetcher):
    with served([head(ETag='"a"'), b"page"]) as url:
        answer = fetcher.get(url)
    assert (answer.status, answer.body, answer.headers["etag"]) == (200, b"page", '"a"')


@pytest.mark.parametrize("body", [b"", b"page", b"a long page " * 100_000], ids=len)
def test_a_packed_body_is_unpacked(fetcher, body):
    packed = gzip.compress(body)
    with served([head(Content_Encoding="gzip"), packed[:7], packed[7:]]) as url:
        assert fetcher.get(url).body == body


def test_half_a_packed_body_is_no_answer(fetcher):
    with served([head(Content_Encoding="gzip"), gzip.compress(b"page")[:-12]]) as url:
        assert isinstance(fetcher.get(url), Failure)


def test_a_body_without_end_is_cut(fetcher):
    with served(chain([head()], ENDLESS)) as url:
        answer = fetcher.get(url)
    assert answer.cut
    assert len(answer.body) == BODY_BYTES_MAX


def test_a_body_that_unpacks_without_end_is_cut(fetcher):
    packed = gzip.compress(bytes(50 * BODY_BYTES_MAX))
    with served([head(Content_Encoding="gzip"), packed]) as url:
        answer = fetcher.get(url)
    assert answer.cut
    assert len(answer.body) == BODY_BYTES_MAX


@pytest.mark.parametrize("coding", ["zstd", "gzip, gzip", "br"])
def test_a_body_that_is_packed_otherwise_is_not_unpacked(fetcher, coding):
    with served([head(Content_Encoding=coding), gzip.compress(b"page")]) as url:
        answer = fetcher.get(url)
    assert isinstance(answer, Failure)
    assert "nobody asked for" in answer.reason


@pytest.mark.parametrize(
    ("at_once", "slow"),
    [(b"", head(Server=LONG)), (head(), LONG.encode())],
    ids=["head", "body"],
)
def test_a_server_that_sends_a_byte_a_second_is_left(fetcher, clock, at_once, slow):
    with served(chain([at_once], slowly(slow, clock))) as url:
        answer = fetcher.get(url)
    assert answer == Failure("ReadTimeout: the answer took too long")


def test_robots_that_have_moved_are_fetched_from_there(fetcher):
    with served([head(), b"rules"]) as url, served([head("302 Found", Location=url)]) as moved:
        assert fetcher.get(moved, follow=True).body == b"rules"


def test_what_a_redirect_says_itself_is_not_read(fetcher):
    with (
        served([head(), b"rules"]) as url,
        served(chain([head("302 Found", Location=url)], ENDLESS)) as moved,
    ):
        assert fetcher.get(moved, follow=True).body == b"rules"


def test_redirects_in_a_circle_end(fetcher):
    scripts = [[head("302 Found", Location="/again")] for _ in range(2 * REDIRECTS_MAX)]
    with served(*scripts) as url:
        assert fetcher.get(url, follow=True) == Failure(f"more than {REDIRECTS_MAX} redirects")


@pytest.mark.parametrize("url", ["http://xn--/", "http://[", "http://a:b/", "file:///etc/passwd"])
def test_what_is_no_address_is_no_answer(fetcher, url):
    assert isinstance(fetcher.get(url), Failure)
