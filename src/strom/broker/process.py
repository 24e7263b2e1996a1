"""A broker as a process: its event loop, its signals, its log, its exit code.

What belongs to a process and to no library is done here and nowhere else: the loop's kind,
signal handlers, the root logger, the garbage collector, how many files may be open.

    first SIGTERM, SIGINT or SIGHUP    a clean stop; exit code 0
    second                             at once, with nothing flushed; exit code 130
    a setting that will not do, a port in use, a directory in use    one line; exit code 1
    the disk of the metadata log fails, or that of every directory   one line; exit code 1
"""

import asyncio
import contextlib
import gc
import logging
import os
import resource
import signal
import sys
from collections.abc import Callable, Mapping

from strom.broker.broker import Broker, StorageLostError
from strom.broker.host import Host
from strom.broker.startup import StartupError
from strom.metadata.settings.definition import SettingsError
from strom.metadata.settings.load import load

log = logging.getLogger("strom")

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_INTERRUPTED = 130
#: Requests make little garbage that refers to itself; the default of 700 is for programs that do.
GARBAGE_THRESHOLD = 20_000
#: So many may be open where there is said to be no limit and no limit is refused (macOS).
UNLIMITED_FILES = 10_240

LINE = "[%(asctime)s] %(levelname)s %(message)s (%(name)s)"
#: A client may name things by thousands of characters, and thousands of things at once.
MESSAGE_CHARS_MAX = 4000


class OneLine(logging.Formatter):
    """Writes a message as one line of readable characters, whatever clients have put into it."""

    def __init__(self) -> None:
        super().__init__(LINE)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """Return the line; what a bug is told with comes behind it."""
        message = record.message
        if len(message) > MESSAGE_CHARS_MAX:
            message = f"{message[:MESSAGE_CHARS_MAX]}…"
        if not message.isprintable():
            message = "".join(
                each if each.isprintable() else each.encode("unicode_escape").decode()
                for each in message
            )
        record.message = message
        return super().formatMessage(record)


def nothing() -> None:
    """Do nothing."""


def run(
    static: Mapping[str, str],
    *,
    on_ready: Callable[[Broker], None],
    on_abort: Callable[[], None] = nothing,
) -> int:
    """Run a broker with these settings until it is told to stop; return the exit code.

    A second signal ends the process without a return: what must not be left then is put away by
    `on_abort`.
    """
    try:
        loaded = load(static)
    except SettingsError as error:
        sys.stderr.write(f"strom: {error}\n")
        return EXIT_FAILED
    log_to_standard_error()
    allow_open_files()
    for note in loaded.notes:
        log.warning("%s", note)
    try:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(serve(Broker(loaded, Host()), on_ready, on_abort))
    except (StartupError, StorageLostError) as error:
        sys.stderr.write(f"strom: {error}\n")
        return EXIT_FAILED
    return EXIT_OK


async def serve(
    broker: Broker, on_ready: Callable[[Broker], None], on_abort: Callable[[], None]
) -> None:
    """Run the broker on this loop, which is all its own."""
    loop = asyncio.get_running_loop()
    for number in stopping_signals():
        loop.add_signal_handler(number, on_signal, broker, on_abort)

    def ready() -> None:
        # What is there now stays: the collector need not look at it again.
        gc.collect()
        gc.freeze()
        gc.set_threshold(GARBAGE_THRESHOLD)
        on_ready(broker)

    await broker.run(on_ready=ready)


def stopping_signals() -> list[signal.Signals]:
    """Return the signals that stop a broker: of a terminal that is closed unless under nohup."""
    is_left_alone = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [signal.SIGTERM, signal.SIGINT, *([] if is_left_alone else [signal.SIGHUP])]


def on_signal(broker: Broker, on_abort: Callable[[], None]) -> None:
    """Stop; or, if that was asked before, be gone."""
    if broker.is_stopping:
        on_abort()
        os._exit(EXIT_INTERRUPTED)
    log.info("Stopping; a second signal ends it at once")
    broker.stop()


def new_loop() -> asyncio.AbstractEventLoop:
    """Return the fastest loop that this system has."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def allow_open_files() -> None:
    """Have as many files open as the system grants at most, as Java does: each client is one.

    What a process begins with is usually 1,024, for the sake of programs that use `select`.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    granted = [hard, UNLIMITED_FILES] if soft < UNLIMITED_FILES else [hard]
    for each in granted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (each, hard))
            return


def log_to_standard_error() -> None:
    """Write the log in one readable form, one line an event, with Kafka's names of levels."""
    logging.addLevelName(logging.WARNING, "WARN")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLine())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
