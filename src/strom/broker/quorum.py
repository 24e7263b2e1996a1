"""The metadata log on this node: what the quorum's protocol decides, done on disk.

    append ──▶ log (page cache) ──▶ run: fsync, for all appended meanwhile ──▶ committed ──▶ told

Metadata is flushed before anybody is told of it: a whole cluster may lose its power, and its
topics must be there when it comes back. The fsync runs off the loop, and everything
appended while one is under way shares the next.

After a crash at any point: the log has all that was committed and perhaps some of what was not,
each batch whole or absent; `quorum-state` is the old or the new; a snapshot is there whole or
not, and the log goes at least back to the newest one.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple
from uuid import UUID

from strom.broker.snapshots import (
    Contents,
    SnapshotId,
    last_timestamp_ms,
    list_snapshots,
    read_snapshot,
    take_control,
    write_snapshot,
)
from strom.log.cold import patiently
from strom.log.config import LogConfig
from strom.log.directory import METADATA_TOPIC, PARTITION_METADATA, write_id
from strom.log.disk import is_short
from strom.log.files import OpenFiles
from strom.log.log import Log
from strom.log.producers import Origin
from strom.metadata.feature_decisions import bootstrap_records
from strom.metadata.image import Image, applied
from strom.metadata.records import read_record, write_record
from strom.metadata.snapshot import snapshot_records
from strom.raft.election import ElectionState, read_election, write_election
from strom.raft.node import LogEnd, Node, Role
from strom.raft.voters import ReplicaKey, Voters, version_message
from strom.records.control import leader_change, write_control_batch
from strom.records.control_key import ControlType
from strom.records.record import Record, read_records, write_batch
from strom.wire.errors import ErrorCode, KafkaError

log = logging.getLogger("strom.quorum")

DIRECTORY = f"{METADATA_TOPIC}-0"
QUORUM_STATE = "quorum-state"
BOOTSTRAP = "bootstrap.checkpoint"
#: The metadata topic's id is always this one.
METADATA_TOPIC_ID = UUID(int=1)

Offload = Callable[[Callable[[], None]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class QuorumConfig:
    """The settings of the metadata log, with Kafka's defaults."""

    segment_bytes: int = 2**30
    segment_ms: int = 7 * 24 * 60 * 60 * 1000
    snapshot_bytes: int = 20 * 1024 * 1024
    snapshot_interval_ms: int = 60 * 60 * 1000
    #: Below 0: no limit.
    retention_bytes: int = 100 * 1024 * 1024
    retention_ms: int = 7 * 24 * 60 * 60 * 1000
    #: How long a decision waits for its commit.
    commit_timeout_ms: int = 30_000


class Surroundings(NamedTuple):
    """What the quorum needs of the process it lives in."""

    files: OpenFiles
    #: The time of day, in milliseconds.
    clock: Callable[[], int]
    #: Runs what waits for the disk, off the loop.
    offload: Offload
    rng: Random


class Committed(NamedTuple):
    """Records that became part of the cluster's history."""

    records: tuple[object, ...]
    end_offset: int
    leader_epoch: int


class MetadataLostError(Exception):
    """What is left of the metadata log does not tell what the cluster is."""


class Quorum:
    """This node's replica of the metadata log, and its vote."""

    def __init__(
        self, loaded: "_Loaded", node: Node, config: QuorumConfig, at: Surroundings
    ) -> None:
        self._log = loaded.log
        self._node = node
        self._config = config
        self._disk = at.files.disk
        self._clock = at.clock
        self._offload = at.offload
        #: What the log led to when it was opened.
        self.loaded_image = loaded.image
        self._uncommitted: deque[Committed] = deque()
        self._committed: deque[Committed] = deque()
        self._publisher_waiter: asyncio.Future[None] | None = None
        self._waiters: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._appended = asyncio.Event()
        self._snapshot_id = loaded.snapshot_id
        self._snapshot_ms = at.clock()
        self._bytes_since_snapshot = loaded.bytes_read
        #: There was no room for one when it was last due.
        self._is_short = False
        #: How old the snapshots are: the time of the newest record in each, if it says so.
        self._times: dict[SnapshotId, int | None] = {}

    @classmethod
    def open(
        cls, directory: str, key: ReplicaKey, config: QuorumConfig, at: Surroundings
    ) -> "Quorum":
        """Load the replica in this log directory, which must be formatted."""
        path = f"{directory}/{DIRECTORY}"
        at.files.disk.make_directory(path)
        loaded = _load(at.files, path, config, at.clock())
        voters = loaded.contents.voters or Voters.of(key, ())
        log_end = LogEnd(loaded.image.leader_epoch, loaded.log.end_offset)
        node = Node(key, voters, _read_election(at.files, path), log_end, at.rng)
        return cls(loaded, node, config, at)

    # Facts.

    @property
    def end_offset(self) -> int:
        """The offset that the next record will get."""
        return self._log.end_offset

    @property
    def start_offset(self) -> int:
        """The first offset that the log still has."""
        return self._log.start_offset

    @property
    def high_watermark(self) -> int:
        """Everything before it is committed."""
        return self._node.high_watermark

    @property
    def leader_id(self) -> int:
        """The node that leads, or -1."""
        return self._node.election.leader_id

    @property
    def leader_epoch(self) -> int:
        """The epoch of the quorum."""
        return self._node.election.epoch

    @property
    def voters(self) -> Voters:
        """Who has a vote."""
        return self._node.voters

    # Leading.

    def start(self) -> None:
        """Take part in the election. Who wins it opens its epoch; that is committed by `run`."""
        effects = self._node.start(self._clock())
        if effects.save is not None:
            self._save(effects.save)
        if self._node.role is Role.LEADER:
            self._open_epoch()

    def _save(self, election: ElectionState) -> None:
        path = f"{self._log.directory}/{QUORUM_STATE}"
        self._disk.write_atomically(path, write_election(election))

    def _open_epoch(self) -> None:
        voters = self._node.voters
        change = leader_change(self._node.key.id, voters.ids, self._node.granting_ids)
        messages = [(ControlType.LEADER_CHANGE, change)]
        if self._log.end_offset == 0:
            # The log repeats what the very first snapshot says, for those who only have the log.
            messages.append((ControlType.KRAFT_VERSION, version_message()))
            messages.append((ControlType.KRAFT_VOTERS, voters.write()))
        batch = write_control_batch(
            messages, base_offset=0, leader_epoch=self.leader_epoch, now_ms=self._clock()
        )
        self._write((), batch)

    def append(self, records: Sequence[object]) -> None:
        """Append the records as one batch, all or nothing; raise if another node leads."""
        if self._node.role is not Role.LEADER:
            raise KafkaError(
                ErrorCode.NOT_CONTROLLER,
                f"The active controller appears to be node {self.leader_id}."
                if self.leader_id >= 0
                else "No controller appears to be active.",
            )
        self._write(tuple(records), written(records, self._clock()))

    def _write(self, records: tuple[object, ...], batch: bytearray) -> None:
        # Also if it cannot be written: `run` looks whether that is the end.
        self._appended.set()
        self._log.append_as_leader(
            memoryview(batch),
            leader_epoch=self.leader_epoch,
            now_ms=self._clock(),
            origin=Origin.REPLICATION,
        )
        end_offset = self._log.end_offset
        self._bytes_since_snapshot += len(batch)
        self._node.on_appended(LogEnd(self.leader_epoch, end_offset))
        self._uncommitted.append(Committed(records, end_offset, self.leader_epoch))

    # Committing.

    async def run(self) -> None:
        """Flush what is appended, for as long as the broker runs; an error of the disk ends it."""
        while True:
            await self._appended.wait()
            self._appended.clear()
            if self._log.failed is not None:
                raise self._log.failed
            await self.flush()

    async def flush(self) -> None:
        """Make all that is appended durable, and tell who waits for it."""
        flush = self._log.begin_flush()
        await self._offload(flush.run)
        self._log.end_flush(flush, self._clock())
        self._commit(self._node.on_flushed(self._node.key.id, self._log.recovery_point))

    def _commit(self, high_watermark: int) -> None:
        while self._uncommitted and self._uncommitted[0].end_offset <= high_watermark:
            self._committed.append(self._uncommitted.popleft())
        # The publisher first: who is told that its topic exists must find it in the image.
        if self._committed and self._publisher_waiter is not None:
            if not self._publisher_waiter.done():
                self._publisher_waiter.set_result(None)
            self._publisher_waiter = None
        while self._waiters and self._waiters[0][0] <= high_watermark:
            waiter = self._waiters.popleft()[1]
            if not waiter.done():
                waiter.set_result(None)

    async def wait_committed(self, end_offset: int) -> None:
        """Return once all before the offset is committed, or raise REQUEST_TIMED_OUT."""
        if end_offset <= self.high_watermark:
            return
        waiter = asyncio.get_running_loop().create_future()
        # Offsets only grow, so the queue is in their order.
        self._waiters.append((end_offset, waiter))
        try:
            async with asyncio.timeout(self._config.commit_timeout_ms / 1000):
                await waiter
        except TimeoutError:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT, "The metadata log took too long to commit."
            ) from None

    def take_committed(self) -> list[Committed]:
        """Return what was committed since the last call, the oldest first."""
        taken = list(self._committed)
        self._committed.clear()
        return taken

    async def wait_for_commits(self) -> None:
        """Return once there is something to take; for the one publisher."""
        if self._committed:
            return
        self._publisher_waiter = asyncio.get_running_loop().create_future()
        await self._publisher_waiter

    # Snapshots.

    def is_snapshot_due(self) -> bool:
        """Whether so much was appended, or so long ago, that a new snapshot is worth it."""
        waited_ms = self._clock() - self._snapshot_ms
        return self._bytes_since_snapshot > 0 and (
            self._bytes_since_snapshot >= self._config.snapshot_bytes
            or waited_ms >= self._config.snapshot_interval_ms
        )

    async def write_snapshot(self, image: Image) -> None:
        """Write the image, which must be a committed one, and drop what is then too old.

        A disk that is full is tried again with the next records; any other error is the end of
        the log, and `run` tells it.
        """
        try:
            await self._write_snapshot(image)
            await self.drop_old()
            self._is_short = False
        except OSError as error:
            if not is_short(error):
                self._log.failed = error
                self._appended.set()
            elif not self._is_short:
                self._is_short = True
                log.warning("There is no snapshot of the metadata for now: %s", error)

    async def _write_snapshot(self, image: Image) -> None:
        taken = SnapshotId(image.end_offset, image.leader_epoch)
        if taken <= self._snapshot_id:
            return
        now_ms = self._clock()
        path = f"{self._log.directory}/{taken.file_name}"
        voters = self._node.voters
        disk = self._disk
        contained_bytes = self._bytes_since_snapshot

        def write() -> None:
            data = write_snapshot(
                snapshot_records(image),
                epoch=taken.epoch,
                voters=voters,
                last_timestamp_ms=now_ms,
                now_ms=now_ms,
            )
            disk.write_atomically(path, data)

        await self._offload(write)
        self._snapshot_id = taken
        self._snapshot_ms = now_ms
        self._bytes_since_snapshot -= contained_bytes
        # The next start reads the log from the snapshot on; then it need not search for that.
        self._log.roll(now_ms)

    async def drop_old(self) -> None:
        """Remove the snapshots that are too much or too old, and the log in front of the rest.

        As in Kafka: the oldest goes first and the newest never. The log begins at the oldest
        snapshot that is left.
        """
        directory, disk, times = self._log.directory, self._disk, dict(self._times)
        found: list[tuple[SnapshotId, int]] = []

        def look() -> None:
            for each, size in list_snapshots(disk, directory):
                # Who drops some at the same time may have dropped it.
                with contextlib.suppress(FileNotFoundError):
                    if each not in times:
                        times[each] = last_timestamp_ms(disk, f"{directory}/{each.file_name}")
                    found.append((each, size))

        await self._offload(look)
        self._times = {each: times[each] for each, _ in found}
        unused = self._drop(found)

        def remove() -> None:
            for path in unused:
                disk.remove(path)

        if unused:
            await self._offload(remove)

    def _drop(self, snapshots: list[tuple[SnapshotId, int]]) -> list[str]:
        """Let the log begin later, as far as it may; return the files that nobody needs then."""
        now_ms = self._clock()
        unused = []
        while len(snapshots) > 1 and (reason := self._reason(snapshots, now_ms)) is not None:
            oldest = snapshots.pop(0)[0]
            log.info("Deleting snapshot %s of the metadata log: %s", oldest.file_name, reason)
            unused.append(f"{self._log.directory}/{oldest.file_name}")
            self._log.raise_start_offset(snapshots[0][0].end_offset)
            retained = patiently(lambda: self._log.retain(now_ms, self.high_watermark))
            unused.extend(retained.files)
        return unused

    def _reason(self, snapshots: list[tuple[SnapshotId, int]], now_ms: int) -> str | None:
        """Return why the oldest snapshot has to go, if it has to."""
        config = self._config
        size_bytes = self._log.size_bytes + sum(size for _, size in snapshots)
        if 0 <= config.retention_bytes < size_bytes:
            return f"{size_bytes} bytes are over metadata.max.retention.bytes"
        time_ms = self._times[snapshots[0][0]]
        if time_ms is not None and 0 <= config.retention_ms < now_ms - time_ms:
            return "older than metadata.max.retention.ms"
        return None

    def close(self) -> None:
        """Make the log durable and give its files back."""
        self._log.close()
        for _, waiter in self._waiters:
            waiter.cancel()


def written(records: Sequence[object], now_ms: int) -> bytearray:
    """Return the batch of the records."""
    return write_batch(
        [Record(index, now_ms, None, write_record(record)) for index, record in enumerate(records)]
    )


class _Loaded(NamedTuple):
    log: Log
    image: Image
    contents: Contents
    snapshot_id: SnapshotId
    bytes_read: int


def _load(files: OpenFiles, path: str, config: QuorumConfig, now_ms: int) -> _Loaded:
    """Read the newest whole snapshot and the log behind it."""
    contents, snapshot_id = _newest_snapshot(files, path)
    opened = Log.open(
        files,
        path,
        LogConfig(
            segment_bytes=config.segment_bytes,
            segment_ms=config.segment_ms,
            cleanup_delete=False,
        ),
        name=(METADATA_TOPIC, 0),
        clean=False,
        # What a snapshot contains was committed, so it was flushed.
        recovery_point=snapshot_id.end_offset,
        start_offset=0,
        now_ms=now_ms,
    )
    _fit_to_snapshot(opened, snapshot_id, now_ms)
    if not files.disk.exists(f"{path}/{PARTITION_METADATA}"):
        content = f"version: 0\ntopic_id: {write_id(METADATA_TOPIC_ID)}".encode()
        files.disk.write_atomically(f"{path}/{PARTITION_METADATA}", content, sync=False)
    image = Image()
    for each in contents.records:
        image = applied(image, each)
    bytes_read = 0
    for header, batch in opened.read_batches(max(snapshot_id.end_offset, opened.start_offset)):
        bytes_read += header.size_bytes
        for record in read_records(batch):
            if header.is_control:
                take_control(contents, record)
            elif record.offset >= snapshot_id.end_offset:
                image = applied(image, read_record(record.value or b""))
    epoch = max(opened.epochs.latest, snapshot_id.epoch)
    image = image._replace(end_offset=opened.end_offset, leader_epoch=epoch)
    return _Loaded(opened, image, contents, snapshot_id, bytes_read)


def _fit_to_snapshot(opened: Log, snapshot_id: SnapshotId, now_ms: int) -> None:
    """Have the log go on where the snapshot ends, or before; refuse what has a gap between."""
    if opened.cut_bytes:
        log.warning("Cut %d bytes off %s-0", opened.cut_bytes, METADATA_TOPIC)
    if opened.start_offset > snapshot_id.end_offset:
        # Without what was before, topics would be unknown that are there, and be put aside.
        raise MetadataLostError(
            f"it begins at offset {opened.start_offset}, and there is no whole snapshot of what "
            "was before: bring back the .checkpoint file"
        )
    if opened.end_offset < snapshot_id.end_offset:
        # As in Kafka: what is written below the snapshot's end would never be read.
        opened.truncate_fully_and_start_at(snapshot_id.end_offset, now_ms)


def _newest_snapshot(files: OpenFiles, path: str) -> tuple[Contents, SnapshotId]:
    for snapshot_id, _ in reversed(list_snapshots(files.disk, path)):
        contents = read_snapshot(files.disk.read(f"{path}/{snapshot_id.file_name}"))
        if contents.is_whole:
            return contents, snapshot_id
        log.warning("The snapshot %s of the metadata is not whole", snapshot_id.file_name)
    return Contents(), SnapshotId(0, 0)


def _read_election(files: OpenFiles, path: str) -> ElectionState:
    try:
        return read_election(files.disk.read(f"{path}/{QUORUM_STATE}"))
    except FileNotFoundError:
        return ElectionState()
    except ValueError as error:
        told = f"{error}; where this node is the only voter, remove the file"
        raise MetadataLostError(told) from None


def read_bootstrap(files: OpenFiles, directory: str) -> Sequence[object]:
    """Return the records that a new cluster begins with, as the directory was formatted."""
    try:
        contents = read_snapshot(files.disk.read(f"{directory}/{BOOTSTRAP}"))
    except FileNotFoundError:
        return bootstrap_records()
    # Formatting does not wait for the disk: after a power cut the file may be empty.
    return contents.records if contents.is_whole else bootstrap_records()
