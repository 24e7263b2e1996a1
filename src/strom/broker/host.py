# Compiled by mypyc.
"""What a broker takes from the machine it runs on: the seams that a simulator replaces.

Nothing else in the broker reads a clock, draws an id, starts a thread or opens a socket. A
simulated host gives a clock that jumps, a disk that forgets, a network that drops, and runs
offloaded work inline in an order drawn from its seed.
"""

import asyncio
import os
import random
import resource
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from strom.broker.network import Network, RealNetwork
from strom.log.cold import Offload
from strom.log.disk import Disk, RealDisk
from strom.log.files import OPEN_SEGMENTS_MAX

Result = TypeVar("Result")
HAS_SENDFILE = hasattr(os, "sendfile")
#: Descriptors for what is opened for a moment: checkpoints, new logs, code that is loaded late.
SPARE_FILES = 128


def wall_clock_ms() -> int:
    """Return the time of day in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def steady_clock_ms() -> int:
    """Return milliseconds that pass whatever the time of day is set to."""
    return time.monotonic_ns() // 1_000_000


def open_files_max() -> int:
    """Return how many descriptors the process may have."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if allowed == resource.RLIM_INFINITY else allowed


async def in_thread(work: Callable[[], Result]) -> Result:
    """Run the work in a thread of the loop's pool."""
    return await asyncio.get_running_loop().run_in_executor(None, work)


@dataclass(slots=True)
class Host:
    """The clock, the disk, the network, chance, threads and processes."""

    now_ms: Callable[[], int] = wall_clock_ms
    disk: Disk = field(default_factory=RealDisk)
    network: Network = field(default_factory=RealNetwork)
    offload: Offload = in_thread
    new_id: Callable[[], uuid.UUID] = uuid.uuid4  # noqa: TID251 - the source that is injected
    rng: random.Random = field(default_factory=random.Random)
    #: Whether another process sees the same disk, and may be given work that is long.
    has_processes: bool = True
    #: How many files and connections may be open together.
    open_files_max: int = field(default_factory=open_files_max)

    @property
    def open_segments_max(self) -> int:
        """How many files of logs stay open; fewer where little may be open."""
        return min(OPEN_SEGMENTS_MAX, self.open_files_max // 4)

    @property
    def connections_max(self) -> int:
        """How many connections leave enough to serve those who have one."""
        spare = min(SPARE_FILES, self.open_files_max // 4)
        return self.open_files_max - self.open_segments_max - spare

    @property
    def steady_ms(self) -> Callable[[], int]:
        """The clock for how long something has taken; a clock that was given is for both."""
        return steady_clock_ms if self.now_ms is wall_clock_ms else self.now_ms

    @property
    def zero_copy(self) -> bool:
        """Whether what is in a file can be sent without reading it."""
        return HAS_SENDFILE and self.disk.has_descriptors and self.network.has_descriptors
