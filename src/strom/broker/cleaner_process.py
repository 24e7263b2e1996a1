"""Where logs are cleaned: in a process of its own, so that the loop keeps its core.

    broker                         process
      job, rate          ─▶
                         ◀─        a cleaned group of segments, durable beside the old ones
      go on              ─▶        (the broker has swapped it)
                         ◀─        the end, or why it failed

A frame is a length of four bytes and a pickle. The process is started with the first job and ends
when its input does; it looks now and then whether its broker is still there, because the next one
would clean the same files. It gives way to others that want the processor, and rests as long as it
works.
"""

import asyncio
import contextlib
import os
import pickle
import struct
import sys
from collections.abc import AsyncGenerator, Iterator
from threading import Event
from time import perf_counter, thread_time
from typing import BinaryIO, NamedTuple

from strom.broker.host import Host
from strom.log.cleaning import Cleaned, Job, UncleanableError, clean
from strom.log.cold import DamagedSegmentError
from strom.log.disk import Disk, RealDisk
from strom.records.walk import BrokenRecordsError
from strom.wire.errors import KafkaError

NICENESS = 10
#: Linux weighs sessions against each other first, and the processes of one only then.
SESSION_NICENESS = "/proc/self/autogroup"
#: After so many bytes the pace is looked at.
PACE_BYTES = 256 * 1024
#: Then it rests for so many times as long as it has worked: who wakes up finds a free core.
REST = 1
#: Not by `-m`: pickles must name this module as the broker does.
MAIN = "from strom.broker.cleaner_process import main; main()"
_LENGTH = struct.Struct(">I")
#: What is wrong with the log itself, and will be the next time.
PERMANENT = (UncleanableError, DamagedSegmentError, BrokenRecordsError, KafkaError, OverflowError)


class CleaningFailedError(Exception):
    """A log was not cleaned; `is_permanent` if trying again would not help."""

    def __init__(self, reason: str, is_permanent: bool) -> None:
        super().__init__(reason)
        self.is_permanent = is_permanent


class Failed(NamedTuple):
    """The same, on its way between the processes."""

    reason: str
    is_permanent: bool


class Pace:
    """Takes as long for bytes as the limit says, rests, and ends with the broker."""

    def __init__(self, bytes_per_second: float, parent: int | None) -> None:
        self._rate = bytes_per_second
        self._parent = parent
        #: Set by another thread when nobody wants it any more.
        self.over = Event()
        self._bytes = 0
        self._since, self._worked = perf_counter(), thread_time()

    def __call__(self, size_bytes: int) -> None:
        """Take note of so many bytes."""
        self._bytes += size_bytes
        if self._bytes < PACE_BYTES:
            return
        if self._parent is not None and os.getppid() != self._parent:
            raise SystemExit
        ahead = self._bytes / max(self._rate, 1) - (perf_counter() - self._since)
        # Not of the time that it had to wait: others use the processor anyway then.
        if self.over.wait(max(ahead, REST * (thread_time() - self._worked))):
            raise InterruptedError("it was broken off")
        self._bytes, self._since, self._worked = 0, perf_counter(), thread_time()


def run_job(disk: Disk, job: Job, pace: Pace) -> Iterator[Cleaned | Failed]:
    """Yield what becomes of the job."""
    try:
        yield from clean(disk, job, pace)
    except (*PERMANENT, OSError) as error:
        yield Failed(f"{type(error).__name__}: {error}", isinstance(error, PERMANENT))


class Cleaner:
    """Does one job after the other, elsewhere."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._process: asyncio.subprocess.Process | None = None
        #: Of the job that a thread is at, where there are no processes.
        self._pace: Pace | None = None

    async def work(self, job: Job, bytes_per_second: float) -> AsyncGenerator[Cleaned, None]:
        """Yield each group, to be swapped before the next is asked for; then the end."""
        if self._host.has_processes:
            answers = self._ask_process(job, bytes_per_second)
        else:
            answers = self._ask_inline(job, bytes_per_second)
        async with contextlib.aclosing(answers):
            async for answer in answers:
                if isinstance(answer, Failed):
                    raise CleaningFailedError(*answer)
                yield answer

    async def _ask_inline(
        self, job: Job, bytes_per_second: float
    ) -> AsyncGenerator[Cleaned | Failed, None]:
        self._pace = Pace(bytes_per_second, None)
        answers = run_job(self._host.disk, job, self._pace)
        while (answer := await self._host.offload(lambda: next(answers, None))) is not None:
            yield answer

    async def _ask_process(
        self, job: Job, bytes_per_second: float
    ) -> AsyncGenerator[Cleaned | Failed, None]:
        is_done = False
        try:
            if self._process is None:
                self._process = await start_process()
            question: object = (job, bytes_per_second)
            while not is_done:
                answer = await self._exchange(self._process, question)
                is_done = isinstance(answer, Failed) or not answer.sources
                yield answer
                question = True
        except (OSError, asyncio.IncompleteReadError) as error:
            # It could not be started, or was ended; nothing of the log has changed.
            yield Failed(f"The cleaner's process ended: {error}", False)
        finally:
            if not is_done:
                await self.close()

    async def _exchange(
        self, process: asyncio.subprocess.Process, question: object
    ) -> Cleaned | Failed:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(framed(question))
        await process.stdin.drain()
        (length,) = _LENGTH.unpack(await process.stdout.readexactly(_LENGTH.size))
        answer: Cleaned | Failed = pickle.loads(await process.stdout.readexactly(length))
        return answer

    async def close(self) -> None:
        """End the process, or the thread's job, whatever it is at."""
        if self._pace is not None:
            self._pace.over.set()
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def start_process() -> asyncio.subprocess.Process:
    """Start the process, with the Python and the packages of this one."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        MAIN,
        # By the time that it could ask who has started it, that may be gone.
        str(os.getpid()),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        # An interrupt from the keyboard is the broker's to heed.
        start_new_session=True,
    )


def framed(message: object) -> bytes:
    """Return the message in its frame."""
    data = pickle.dumps(message)
    return _LENGTH.pack(len(data)) + data


def read_frame(source: BinaryIO) -> object | None:
    """Return the next message, None at the end."""
    head = source.read(_LENGTH.size)
    return None if len(head) < _LENGTH.size else pickle.loads(source.read(*_LENGTH.unpack(head)))


def give_way() -> None:
    """Let whoever else wants the processor have it: this process, and its session."""
    os.nice(NICENESS)
    # Elsewhere than on Linux there is no such file, and no such weighing.
    with contextlib.suppress(OSError), open(SESSION_NICENESS, "w") as session:
        session.write(str(NICENESS))


def main() -> None:
    """Do what is asked on standard input until it ends."""
    give_way()
    parent = int(sys.argv[1])
    source, target = sys.stdin.buffer, sys.stdout.buffer
    while (question := read_frame(source)) is not None:
        if os.getppid() != parent:
            # The next broker's cleaner may be at the same files.
            return
        assert isinstance(question, tuple)
        job, bytes_per_second = question
        for answer in run_job(RealDisk(), job, Pace(bytes_per_second, parent)):
            target.write(framed(answer))
            target.flush()
            is_last = isinstance(answer, Failed) or not answer.sources
            if not is_last and read_frame(source) is None:
                return
