"""A broker in the test's own process, on a free port, that leaves nothing behind.

It runs on a loop of its own in a thread of its own, so tests need not be asynchronous and may
use any client. Several may live side by side: each has its own metrics, and none touches
signals, the root logger, the garbage collector or the loop policy.
"""

import asyncio
import contextlib
import shutil
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from strom.broker.broker import Broker
from strom.broker.host import Host
from strom.metadata.settings.load import load

START_SECONDS_MAX = 30
STOP_SECONDS_MAX = 30


class LocalBroker:
    """One node, started and stopped by `with`."""

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        directory: Path | None = None,
        host: Host | None = None,
    ) -> None:
        if directory is not None and "," in str(directory):
            raise ValueError(f"a log directory has no comma in its name, and {directory} has")
        self._settings = dict(settings or {})
        self._own_directory = directory is None
        self.directory = directory or Path(tempfile.mkdtemp(prefix="strom-"))
        self._host = host or Host()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._started = threading.Event()
        self._error: BaseException | None = None
        self.broker: Broker | None = None

    @property
    def metrics_url(self) -> str:
        """Where /metrics is, for a broker with `strom.http.port` set (0 picks a free one)."""
        assert self.broker is not None
        assert self.broker.metrics_url is not None
        return self.broker.metrics_url

    @property
    def bootstrap(self) -> str:
        """The address for `bootstrap.servers`."""
        assert self.broker is not None
        return self.broker.bootstrap

    def start(self) -> Self:
        """Start the broker; return when it serves."""
        self._started.clear()
        self._thread = threading.Thread(target=self._run, name="strom-broker", daemon=True)
        self._thread.start()
        if not self._started.wait(START_SECONDS_MAX):
            raise TimeoutError("the broker did not start")
        if self._error is not None:
            self._thread.join()
            self._thread = None
            raise self._error
        return self

    def stop(self) -> None:
        """Stop the broker cleanly; its data stays until `remove`.

        What has ended it before is raised here.
        """
        if self._thread is None or self._loop is None or self.broker is None:
            return
        with contextlib.suppress(RuntimeError):
            # It may have ended by itself, and its loop with it.
            self._loop.call_soon_threadsafe(self.broker.stop)
        self._thread.join(STOP_SECONDS_MAX)
        if self._thread.is_alive():
            raise TimeoutError("the broker did not stop")
        self._thread = None
        if self._error is not None:
            raise self._error

    def remove(self) -> None:
        """Remove the broker's data, if the directory was made for it."""
        if self._own_directory:
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.remove()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.stop()
        finally:
            self.remove()

    def _run(self) -> None:
        self._error = None
        static = {
            "log.dirs": str(self.directory),
            "listeners": "PLAINTEXT://127.0.0.1:0",
            # A test that shortens the interval of a chore wants to see the chore soon.
            "log.initial.task.delay.ms": "0",
            **self._settings,
        }
        try:
            with asyncio.Runner() as runner:
                self._loop = runner.get_loop()
                runner.run(self._serve(static))
        except BaseException as error:  # noqa: BLE001 - it is raised again in the test's thread
            self._error = error
        finally:
            self._started.set()

    async def _serve(self, static: dict[str, str]) -> None:
        self.broker = Broker(load(static), self._host)
        await self.broker.run(on_ready=self._started.set)
