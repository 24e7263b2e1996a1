"""An API is two declared classes and one handler: three versions in ten lines.

`strom.wire.messages` shows these lines to who wants to add one.
"""

import asyncio
from types import ModuleType, SimpleNamespace

import pytest

from strom.broker.connection import Slot
from strom.broker.dispatch import Dispatch, api_of
from strom.broker.metrics import Metrics
from strom.wire import messages
from strom.wire.messages import declared_message
from strom.wire.primitives import INT16, INT32
from strom.wire.schema import message, of


@message(newest=2, flexible_since=1)
class Request:
    name: str = of("string")
    count: int = of("int32", since=2, default=1)


@message(newest=2, flexible_since=1)
class Response:
    names: tuple[str, ...] = of("string")


KEY, VERSIONS, MESSAGES = 1000, range(3), (Request, Response)


def handle(request, context):
    return Response(names=(request.name,) * request.count)


@pytest.fixture
def api():
    module = ModuleType("strom.broker.api.repeat")
    vars(module).update(KEY=KEY, VERSIONS=VERSIONS, MESSAGES=MESSAGES, handle=handle)
    return api_of(module)


class Connection:
    """Keeps what it is told."""

    def __init__(self):
        self.sent = b""
        self.error = None

    def open_slot(self):
        return Slot()

    def fill(self, slot, parts):
        self.sent += b"".join(parts)

    def close(self, error=None):
        self.error = error


def served(api, version, body):
    """What a connection gets for a request."""
    connection = Connection()
    parts = SimpleNamespace(host=SimpleNamespace(now_ms=lambda: 0), metrics=Metrics())
    head = INT16.pack(KEY) + INT16.pack(version) + INT32.pack(5) + INT16.pack(-1)

    async def run():
        async with asyncio.TaskGroup() as tasks:
            dispatch = Dispatch({KEY: api}, parts, tasks.create_task)
            dispatch.take(memoryview(head + body), connection)

    asyncio.run(run())
    assert connection.error is None
    return connection.sent


@pytest.mark.parametrize(
    ("version", "asked", "answer"),
    [
        (0, b"\0\1t", b"\0\0\0\1\0\1t"),
        (1, b"\0\2t\0", b"\0\2\2t\0"),
        (2, b"\0\2t\0\0\0\2\0", b"\0\3\2t\2t\0"),
    ],
)
def test_a_declared_api_is_served_in_all_of_its_versions(api, version, asked, answer):
    assert served(api, version, asked) == INT32.pack(len(answer) + 4) + INT32.pack(5) + answer


@pytest.mark.parametrize("version", VERSIONS)
def test_a_declared_message_reads_back_as_it_was_written(version):
    form = declared_message(Request)
    request = Request(name="t", count=3 if version == 2 else 1)
    assert form.read(version, form.write(version, request)) == request


def test_the_module_shows_how_it_is_done():
    for line in ("@message(newest=2, flexible_since=1)", "VERSIONS, MESSAGES = 1000, range(3)"):
        assert line in messages.__doc__
