"""The loop never waits for the disk, whatever is not in memory after a start, or no longer.

Row: CON-12, and what is done where the page cache does not have it. A disk that tells who has
waited for it stands under a whole broker: one in memory, of which everything is cold, and a real
one, of which a thread keeps evicting everything while clients read and write.
"""

import asyncio
import itertools
import os
import threading
import time
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from strom.broker.api import fetch
from strom.broker.context import Context, Large
from strom.broker.host import Host
from strom.broker.housekeeping import Housekeeping
from strom.log import epochs
from strom.log.disk import HAS_NOWAIT, RealDisk, RealFile
from strom.testing.broker import LocalBroker
from strom.wire.codec import RequestHeader
from strom.wire.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.broker.api.conftest import create, produce
from tests.conformance.batches import NOW_MS, batch, headers
from tests.conformance.raw import Raw
from tests.patience import PATIENCE_SECONDS

TOPIC = "flug"
#: So that a few large batches are several segments.
SEGMENT_BYTES = 1024 * 1024
BATCHES = 12
RECORDS = 3
END = BATCHES * RECORDS
LOOKS_MIN = 60


def value(number):
    return (b"%04d" % number) * 25_000


def fill(bootstrap, topic=TOPIC):
    """Write batches of three records, a second apart, over several segments."""
    with Raw(bootstrap) as raw:
        create(raw, topic, partitions=1, segment_bytes=SEGMENT_BYTES, retention_ms=-1)
        for number in range(BATCHES):
            values = [value(number * RECORDS + each) for each in range(RECORDS)]
            produce(raw, topic, batch(values, time_ms=NOW_MS + number * 1000))


@pytest.fixture
def broker(disk):
    """A broker that was stopped and started again; nothing is in memory."""
    local = LocalBroker(directory=Path("/data"), host=Host(disk=disk))
    with local:
        fill(local.bootstrap)
    with local:
        disk.cool()
        yield local


def on_loop(broker, work):
    return asyncio.run_coroutine_threadsafe(work, broker._loop).result(PATIENCE_SECONDS)


def waited_on_loop(broker, disk):
    """What the loop had to wait for; that others had to is what makes the test one."""
    assert disk.waits, "nothing was cold"
    return [each[1:] for each in waits_to_read(disk) if each.thread == broker._thread.ident]


def waits_to_read(disk):
    """Without a file that is only opened to be written to."""
    return [each for each in disk.waits if not each.path.endswith(epochs.FILE_NAME)]


async def fetched(broker, offset, *, bytes_max, isolation_level=0):
    """Ask the handler: a file in memory cannot be sent by a socket."""
    place = FetchPartition(0, offset, bytes_max)
    topics = [FetchTopic(TOPIC, None, [place])]
    request = FetchRequest(-1, -1, 0, 1, 1 << 30, isolation_level, 0, -1, topics, [], "")
    context = Context(broker.broker.parts, SimpleNamespace(), RequestHeader(1, 12, 0, "c", 0))
    reply = fetch.handle(request, context)
    if isinstance(reply, Coroutine):
        reply = await reply
    response = reply.build() if isinstance(reply, Large) else reply
    ((found,),) = [topic.partitions for topic in response.topics]
    return found


@pytest.mark.parametrize("isolation_level", [0, 1])
@pytest.mark.parametrize("offset", [0, 7, END - 1])
def test_a_fetch_waits_for_nothing_on_the_loop(broker, disk, offset, isolation_level):
    found = on_loop(
        broker, fetched(broker, offset, bytes_max=500_000, isolation_level=isolation_level)
    )
    assert waited_on_loop(broker, disk) == []
    data = found.records.file.read_at(found.records.position, found.records.size)
    first = headers(data)[0]
    assert first.base_offset == offset // RECORDS * RECORDS


def test_a_fetch_of_what_is_in_memory_is_answered_at_once(broker, disk):
    on_loop(broker, fetched(broker, 0, bytes_max=500_000))
    disk.waits = []
    on_loop(broker, fetched(broker, 0, bytes_max=500_000))
    assert disk.waits == []


def test_a_page_that_was_dropped_again_is_read_by_a_thread(broker, disk):
    for _ in range(2):
        on_loop(broker, fetched(broker, 7, bytes_max=500_000))
        assert waited_on_loop(broker, disk) == []
        disk.cool()


def list_offsets(raw, timestamp):
    place = {"partition_index": 0, "timestamp": timestamp}
    asked = {"topics": [{"name": TOPIC, "partitions": [place]}]}
    (found,) = raw.ask("list_offsets", 11, asked)["topics"][0]["partitions"]
    assert found["error_code"] == "none"
    return found["offset"]


@pytest.mark.parametrize(
    ("timestamp", "offset"),
    [(NOW_MS, 0), (NOW_MS + 3500, 4 * RECORDS), (NOW_MS + 10**9, -1), (-3, END - RECORDS)],
    ids=["first", "between", "behind all", "largest"],
)
def test_a_search_by_time_waits_for_nothing_on_the_loop(broker, disk, raw, timestamp, offset):
    assert list_offsets(raw, timestamp) == offset
    assert waited_on_loop(broker, disk) == []


def test_the_ends_of_a_log_are_known_without_reading(disk, raw):
    assert (list_offsets(raw, -1), list_offsets(raw, -2)) == (END, 0)
    assert disk.waits == []


def test_epochs_and_deletion_need_no_reading(disk, raw):
    partition = {"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}
    asked = {"replica_id": -1, "topics": [{"topic": TOPIC, "partitions": [partition]}]}
    (found,) = raw.ask("offset_for_leader_epoch", 4, asked)["topics"][0]["partitions"]
    assert found["end_offset"] == END
    partition = {"partition_index": 0, "offset": 5}
    asked = {"topics": [{"name": TOPIC, "partitions": [partition]}], "timeout": 5000}
    (found,) = raw.ask("delete_records", 2, asked)["topics"][0]["partitions"]
    assert found["low_watermark"] == 5
    assert waits_to_read(disk) == []


def test_the_first_append_after_a_start_waits_for_nothing_on_the_loop(broker, disk, raw):
    assert produce(raw, TOPIC, batch([b"more"])) == END
    assert waited_on_loop(broker, disk) == []


def test_a_marker_from_elsewhere_waits_for_nothing_on_the_loop(broker, disk, raw):
    """TXN-08: an admin's, or another broker's, may be the first append after a start."""
    marker = {"producer_id": 7, "producer_epoch": 0, "transaction_result": False}
    marker |= {"coordinator_epoch": 0, "topics": [{"name": TOPIC, "partition_indexes": [0]}]}
    answer = raw.ask("write_txn_markers", 1, {"markers": [marker]})
    (told,) = answer["markers"][0]["topics"][0]["partitions"]
    assert told["error_code"] == "none"
    assert waited_on_loop(broker, disk) == []


def test_retention_waits_for_nothing_on_the_loop(broker, disk):
    """RET-05: how old a segment is stands in its time index."""
    parts = broker.broker.parts
    log = parts.replicas.find(TOPIC, 0).log
    before = len(log.segments)

    async def retain():
        log.config = replace(log.config, retention_ms=parts.host.now_ms() - NOW_MS - 5000)
        await Housekeeping(parts, None).retain()

    on_loop(broker, retain())
    assert 0 < len(log.segments) < before
    assert waited_on_loop(broker, disk) == []


# A real disk.


class WatchedFile(RealFile):
    """Notes which threads read what is not in memory."""

    __slots__ = ("waits",)

    def read_at(self, position, size):
        note_wait(self.fileno(), position, size, self.waits)
        return super().read_at(position, size)


class WatchedDisk(RealDisk):
    __slots__ = ("waits",)

    def __init__(self):
        self.waits = []

    def open(self, path, *, create=False):
        opened = super().open(path, create=create)
        file = WatchedFile(os.dup(opened.fileno()))
        file.waits = self.waits
        return file

    def read(self, path):
        fd = os.open(path, os.O_RDONLY)
        try:
            note_wait(fd, 0, os.fstat(fd).st_size, self.waits)
        finally:
            os.close(fd)
        return super().read(path)


def note_wait(fd, position, size, waits):
    try:
        os.preadv(fd, [bytearray(size)], position, os.RWF_NOWAIT)
    except BlockingIOError:
        waits.append(threading.get_ident())


def evict(root, until):
    """Let the system drop what it has of the files, again and again."""
    while not until.is_set():
        for path in list(Path(root).rglob("*.*")):
            try:
                fd = os.open(path, os.O_RDONLY)
            except FileNotFoundError:
                continue
            os.fdatasync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


def can_evict(root):
    """Whether this file system forgets what it is told to, sooner or later, and says so."""
    path = root / "probe"
    path.write_bytes(b"x" * 100_000)
    with path.open("rb") as file:
        waits = []
        for _ in range(1000):
            os.fdatasync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            try:
                note_wait(file.fileno(), 0, 10, waits)
            except OSError:
                return False
            if waits:
                return True
    return False


def fetch_values(raw, offset):
    place = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 400_000}
    asked = {
        "replica_id": -1,
        "max_bytes": 1 << 20,
        "min_bytes": 1,
        "session_epoch": -1,
        "topics": [{"topic": TOPIC, "partitions": [place]}],
    }
    (found,) = raw.ask("fetch", 12, asked)["responses"][0]["partitions"]
    assert found["error_code"] == "none"
    return found["records"]


@pytest.mark.skipif(not HAS_NOWAIT, reason="nobody can tell what is in memory here")
def test_under_load_the_loop_does_not_wait_for_pages_that_were_dropped(tmp_path):
    if not can_evict(tmp_path):
        pytest.skip("this file system keeps what it has in memory")
    disk = WatchedDisk()
    root = tmp_path / "data"
    local = LocalBroker(directory=root, host=Host(disk=disk))
    with local:
        fill(local.bootstrap)
    over = threading.Event()
    with local:
        evicting = threading.Thread(target=evict, args=(root, over))
        evicting.start()
        writing = threading.Thread(target=keep_writing, args=(local.bootstrap, over))
        writing.start()
        disk.waits.clear()
        try:
            with Raw(local.bootstrap) as raw:
                look_around(raw, disk)
        finally:
            over.set()
            evicting.join()
            writing.join()
        assert disk.waits, "nothing was cold"
        assert local._thread.ident not in disk.waits


def look_around(raw, disk):
    """Read here and there, until that has met something cold."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    for number in itertools.count():
        if number >= LOOKS_MIN and (disk.waits or time.monotonic() > deadline):
            return
        offset = number * 7 % END
        assert value(offset) in fetch_values(raw, offset)
        wanted = number % BATCHES
        assert list_offsets(raw, NOW_MS + wanted * 1000) == wanted * RECORDS


def keep_writing(bootstrap, until):
    with Raw(bootstrap) as raw:
        create(raw, "other", partitions=1)
        while not until.is_set():
            produce(raw, "other", batch([b"x" * 1000] * 10))
