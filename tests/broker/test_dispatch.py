"""Dispatch: whatever goes wrong with one request ends its connection, and nothing else."""

import asyncio
import threading
from functools import partial
from types import SimpleNamespace

import pytest

from strom.broker import dispatch as dispatching
from strom.broker.connection import Slot
from strom.broker.context import Large, Ordered, Waiting
from strom.broker.dispatch import Api, Dispatch
from strom.broker.host import in_thread as offload
from strom.broker.metrics import Metrics
from strom.replication.waiting import Waiter
from strom.wire.primitives import INT16, INT32, MalformedFrame

KEY = 7


class Connection:
    """Keeps what it is told."""

    def __init__(self):
        self.sent = []
        self.error = None
        self.blocked = False
        self.closed = False
        self.done = asyncio.Event()

    def open_slot(self):
        return Slot()

    def fill(self, slot, parts):
        self.sent.append(parts)
        self.done.set()

    def block(self):
        self.blocked = True

    def unblock(self):
        self.blocked = False

    def close(self, error=None):
        self.error = error
        self.done.set()


class Codec:
    """Writes bytes and nothing else; reads what is not empty."""

    flexible = False

    def read(self, frame, position):
        body = bytes(frame[position:])
        return {b"good": body}[body]

    def write(self, response):
        return [b"<" + response + b">"]


def request(body=b"good", key=KEY):
    return INT16.pack(key) + INT16.pack(0) + INT32.pack(5) + INT16.pack(-1) + body


async def later(reply):
    return reply


def waiting(look, times=2):
    """A reply that comes of the second look, when time is up."""
    again = (lambda _: waiting(look, times - 1)) if times > 1 else look
    return Waiting(Waiter((), 1, 0), again)


async def failing(error=None):
    raise error or LookupError("a fault")


def served(handle, frame=None, connection=None):
    """What the connection was told, and the metrics."""
    api = Api("faulty", KEY, range(1), handle, lambda version: Codec())
    parts = SimpleNamespace(
        host=SimpleNamespace(now_ms=lambda: 0, offload=offload), metrics=Metrics()
    )
    connection = connection or Connection()

    async def run():
        async with asyncio.TaskGroup() as tasks:
            dispatch = Dispatch({KEY: api, 18: api}, parts, tasks.create_task)
            dispatch.take(memoryview(frame or request()), connection)
            async with asyncio.timeout(30):
                await connection.done.wait()

    asyncio.run(run())
    return connection, parts.metrics


def answer(body):
    return INT32.pack(len(body) + 4) + INT32.pack(5) + body


@pytest.mark.parametrize(
    "reply",
    [
        lambda: b"now",
        lambda: later(b"now"),
        lambda: Ordered(later(b"now")),
        lambda: waiting(lambda _: b"now"),
        lambda: waiting(lambda _: later(b"now")),
    ],
)
def test_a_reply_is_sent_now_or_later(reply):
    connection, metrics = served(lambda *_: reply())
    assert connection.sent == [[answer(b"<now>")]]
    assert connection.error is None
    assert not connection.blocked
    assert metrics.failed_requests == 0


@pytest.fixture
def everything_is_large(monkeypatch):
    monkeypatch.setattr(dispatching, "LARGE_REQUEST_BYTES", 0)


@pytest.mark.parametrize(
    "reply",
    [
        lambda: b"now",
        lambda: later(b"now"),
        lambda: Ordered(later(b"now")),
        lambda: waiting(lambda _: b"now"),
        lambda: waiting(lambda _: later(b"now")),
    ],
)
@pytest.mark.usefixtures("everything_is_large")
def test_a_large_request_is_read_in_a_thread_and_its_answer_written_in_one(reply, monkeypatch):
    threads = []

    def read(self, frame, position):
        threads.append(threading.get_ident())
        return bytes(frame[position:])

    def write(self, response):
        threads.append(threading.get_ident())
        return [b"<" + response + b">"]

    monkeypatch.setattr(Codec, "read", read)
    monkeypatch.setattr(Codec, "write", write)
    connection, _ = served(lambda request, _: reply() if request == b"good" else None)
    assert connection.sent == [[answer(b"<now>")]]
    assert not connection.blocked
    assert len(threads) == 2
    assert threading.get_ident() not in threads


@pytest.mark.usefixtures("everything_is_large")
def test_a_large_request_may_have_no_answer():
    connection, _ = served(lambda *_: None)
    assert connection.sent == [[]]
    assert not connection.blocked


@pytest.mark.usefixtures("everything_is_large")
def test_a_large_request_that_is_none_closes_the_connection(monkeypatch, caplog):
    monkeypatch.setattr(Codec, "read", lambda *_: int("none"))
    connection, metrics = served(fails)
    assert isinstance(connection.error, MalformedFrame)
    assert not connection.blocked
    assert metrics.failed_requests == 0
    assert caplog.text == ""


def test_no_reply_is_nothing_to_send():
    assert served(lambda *_: None)[0].sent == [[]]


def fails(request, context, error=None):
    raise error or LookupError("a fault")


@pytest.mark.parametrize(
    "handle",
    [
        fails,
        lambda *_: failing(),
        lambda *_: Ordered(failing()),
        lambda *_: "not bytes",
        lambda *_: later("not bytes"),
        lambda *_: Ordered(later("not bytes")),
        lambda *_: waiting({}.__getitem__),
        lambda *_: waiting(lambda _: "not bytes"),
    ],
    ids=[
        *("at once", "later", "in order", "written", "written later", "written in order"),
        *("after a wait", "written after a wait"),
    ],
)
def test_a_fault_of_a_handler_or_of_its_answer_ends_the_connection_only(handle, caplog):
    connection, metrics = served(handle)
    assert connection.sent == []
    assert isinstance(connection.error, LookupError | TypeError)
    assert not connection.blocked
    assert metrics.failed_requests == 1
    assert "faulty version 0 failed" in caplog.text


@pytest.mark.parametrize("refuse", [fails, lambda *_, error: failing(error)])
def test_a_request_that_a_handler_takes_for_none_is_no_fault_of_ours(refuse, caplog):
    error = MalformedFrame("far too many things")
    connection, metrics = served(partial(refuse, error=error))
    assert connection.error is error
    assert metrics.failed_requests == 0
    assert caplog.text == ""


def test_a_fault_in_reading_ends_the_connection_only(caplog):
    connection, metrics = served(fails, request(b"a body that the codec has a fault with"))
    assert isinstance(connection.error, KeyError)
    assert metrics.failed_requests == 1


def test_an_api_that_is_not_served_ends_the_connection():
    connection, metrics = served(fails, request(key=99))
    assert "API key 99 version 0 is not served" in str(connection.error)
    assert metrics.failed_requests == 0


def in_thread(build):
    """A reply that says in which thread it was built."""
    return Large(lambda: build(threading.current_thread() is threading.main_thread()))


@pytest.mark.parametrize(
    "reply", [in_thread, lambda build: later(in_thread(build))], ids=["at once", "later"]
)
def test_a_large_reply_is_built_off_the_loop(reply):
    connection, metrics = served(lambda *_: reply(lambda on_loop: b"%d" % on_loop))
    assert connection.sent == [[answer(b"<0>")]]
    assert metrics.sent_bytes == 3


@pytest.mark.parametrize(
    "reply", [lambda build: Large(build), lambda build: Ordered(later(Large(build)))]
)
def test_the_next_request_waits_until_a_large_reply_is_built(reply):
    held_back = []
    connection = Connection()

    def build():
        held_back.append(connection.blocked)
        return b"now"

    served(lambda *_: reply(build), connection=connection)
    assert held_back == [True]
    assert not connection.blocked


def test_a_fault_in_building_a_large_reply_ends_the_connection_only(caplog):
    connection, metrics = served(lambda *_: Large(lambda: {}["a fault"]))
    assert isinstance(connection.error, KeyError)
    assert metrics.failed_requests == 1
