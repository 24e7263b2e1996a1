"""A broker, put together by hand and in order: the place to see what there is.

    ports bound ─▶ directories ─▶ quorum ─▶ controller ─▶ registered ─▶ logs opened ─▶ serving

Ports come first: as long as one of them is in use, nothing on the disk is touched.

A single node is a cluster of one: it is its own quorum's voter, leader and active controller,
and it registers with that controller as any broker would.

Every task that outlives a request is in the one TaskGroup of `run`. A fault in one of them is
logged and ends that one; without the metadata log and its publisher there is no broker, so
theirs end it. Stopping goes backwards: nothing new is taken, what is under way is answered, the
logs are flushed, checkpoints and the mark of a clean stop are written.
"""

import asyncio
import contextlib
import errno
import logging
import os
import socket
from collections.abc import Callable, Coroutine, Mapping
from importlib import import_module
from itertools import chain
from pkgutil import iter_modules
from typing import Any

from strom.broker import api
from strom.broker.admission import address_limits
from strom.broker.context import Endpoint, Parts
from strom.broker.coordination import Surroundings as Around
from strom.broker.dispatch import Api, api_of
from strom.broker.flushing import Flushing
from strom.broker.gauges import add_gauges
from strom.broker.host import Host
from strom.broker.housekeeping import Housekeeping
from strom.broker.http import HttpServer, bind_http
from strom.broker.internal_topics import coordinators
from strom.broker.listening import WILDCARDS, ListenersInForce, advertise, bind
from strom.broker.markers import Markers
from strom.broker.metrics import Metrics
from strom.broker.moves import Moves
from strom.broker.network import Address, Listening
from strom.broker.producer_ids import Block, ProducerIds
from strom.broker.publisher import Publisher
from strom.broker.quorum import Quorum, QuorumConfig, Surroundings, read_bootstrap
from strom.broker.replicas import Replicas
from strom.broker.reports import Reports
from strom.broker.server import Server
from strom.broker.sessions import FetchSessions
from strom.broker.startup import StartupError, Storage, open_directories, open_quorum, told
from strom.broker.telemetry import Telemetry
from strom.metadata import records
from strom.metadata.broker_decisions import Heartbeat, Registration
from strom.metadata.controller import Controller
from strom.metadata.feature_decisions import supported_features
from strom.metadata.records import Record
from strom.metadata.settings.definition import SettingsError
from strom.metadata.settings.load import Loaded
from strom.metadata.settings.rules import SettingRules
from strom.replicated.runtime import Runtime
from strom.replication.partition import Partition
from strom.wire.errors import KafkaError

log = logging.getLogger("strom.broker")

#: How long a stop waits for answers that are under way.
DRAIN_SECONDS_MAX = 5.0
DRAIN_CHECK_SECONDS = 0.01
PLAINTEXT = 0
MOVE_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
SESSION_SLOTS = "max.incremental.fetch.session.cache.slots"
#: Hosts that stand for every address of this machine.


class StorageLostError(Exception):
    """Why a broker that was serving ended: what it cannot do without is gone; one line."""


class Broker:
    """One node: broker and controller."""

    def __init__(self, loaded: Loaded, host: Host) -> None:
        self._loaded = loaded
        self._host = host
        self._node_id = loaded.settings.node_id
        self._stopping = asyncio.Event()
        self._tasks: asyncio.TaskGroup | None = None
        self._background: set[asyncio.Task[None]] = set()
        self.bootstrap = ""
        #: Where /metrics is, if it is served.
        self.http_port: int | None = None
        self.is_serving = False
        self._epoch = -1
        self._reports: Reports | None = None
        #: Why it stops although nobody asked it to.
        self._lost: StorageLostError | None = None
        self.parts: Parts | None = None

    @property
    def is_stopping(self) -> bool:
        """Whether a stop was asked for."""
        return self._stopping.is_set()

    @property
    def metrics_url(self) -> str | None:
        """Where /metrics is for who is on this machine, if it is served."""
        host = "127.0.0.1" if self._http_host in WILDCARDS else self._http_host
        at = f"{bracketed(host)}:{self.http_port}"
        return None if self.http_port is None else f"http://{at}/metrics"

    @property
    def _http_host(self) -> str:
        return self._loaded.settings.text("strom.http.host") or ""

    def stop(self) -> None:
        """Ask for a clean stop; `run` returns when it is done."""
        self._stopping.set()

    async def run(self, *, on_ready: Callable[[], None]) -> None:
        """Start, serve until `stop`, stop."""
        with contextlib.ExitStack() as held:
            listening = self._bind()
            for each in chain.from_iterable(listening.values()):
                held.callback(each.close)
            http_socket = self._bind_http()
            if http_socket is not None:
                held.callback(http_socket.close)
            storage = open_directories(self._host, self._loaded.settings)
            held.callback(storage.close, clean=False)
            try:
                async with asyncio.TaskGroup() as tasks:
                    self._tasks = tasks
                    await self._run(listening, http_socket, storage, on_ready)
                    for task in list(self._background):
                        task.cancel()
            except BaseExceptionGroup as group:
                raise first_cause(group) from group
        if self._lost is not None:
            raise self._lost

    async def _run(
        self,
        listening: dict[str, list[Listening]],
        http_socket: socket.socket | None,
        storage: Storage,
        on_ready: Callable[[], None],
    ) -> None:
        parts = self.parts = await self._assemble(storage)
        self._advertise(parts, listening)
        server = Server(parts, apis := load_apis(), self.start_task, listening)
        parts.markers.send_answers = server.outbox.send_all
        parts.api_versions = tuple(
            (each.key, each.versions[0], each.versions[-1]) for each in apis.values()
        )
        http = HttpServer(parts.metrics, lambda: self.is_serving, self._host.offload)
        housekeeping = Housekeeping(parts, server)
        try:
            if http_socket is not None:
                self.http_port = await http.start(http_socket)
            await self._join(parts, storage)
            housekeeping.start(self.start_task)
            self.start_task(self._report(storage))
            self.start_task(ListenersInForce(parts, server).run())
            add_gauges(parts, server)
            server.accept()
            self.is_serving = True
            on_ready()
            await self._stopping.wait()
            self.is_serving = False
            await self._drain(server, parts)
        finally:
            http.close()
            server.close()
        await self._close(parts, housekeeping, storage)

    def start_task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run the work until it ends, or the broker does; a fault in it ends nothing else."""
        return self._start_vital(logging_faults(work))

    def _start_vital(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run work that the broker cannot do without: a fault in it ends the broker."""
        assert self._tasks is not None
        task = self._tasks.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    # Start.

    async def _assemble(self, storage: Storage) -> Parts:
        """Build the parts around the metadata log, which is loaded and led from here on."""
        host, settings, cluster_id = self._host, self._loaded.settings, storage.cluster_id
        replicas = Replicas(host, self._node_id, storage.logs, self.start_task)
        around_log = Surroundings(replicas.files, host.now_ms, host.offload, host.rng)
        quorum = open_quorum(storage, self._node_id, self._quorum_config(), around_log)
        flushing = Flushing(host, replicas, self.start_task)
        rules = SettingRules(settings)
        controller = Controller(
            quorum.loaded_image, cluster_id=cluster_id, node_id=self._node_id, rules=rules
        )
        runtime: Runtime[Record] = Runtime(controller, quorum)
        around = Around(self._node_id, host, replicas, flushing, self.start_task)
        groups, transactions = coordinators(around, settings)
        reports = self._reports = Reports(self._node_id, replicas, controller, runtime)
        parts: Parts = Parts(
            node_id=self._node_id,
            cluster_id=cluster_id,
            host=host,
            settings=settings,
            image=quorum.loaded_image,
            replicas=replicas,
            flushing=flushing,
            controller=controller,
            runtime=runtime,
            quorum=quorum,
            publisher=Publisher(quorum, rules),
            producer_ids=ProducerIds(self._take_producer_ids),
            fetch_sessions=FetchSessions(host.rng, settings.number(SESSION_SLOTS)),
            metrics=Metrics(),
            telemetry=Telemetry(),
            groups=groups,
            transactions=transactions,
            markers=Markers(around, groups, transactions, lambda: parts.image),
            moves=Moves(
                host,
                replicas,
                flushing,
                self.start_task,
                lambda: parts.settings.number(MOVE_RATE),
                reports.note_moved,
            ),
        )
        return parts

    def _quorum_config(self) -> QuorumConfig:
        settings = self._loaded.settings
        return QuorumConfig(
            segment_bytes=settings.number("metadata.log.segment.bytes"),
            segment_ms=settings.number("metadata.log.segment.ms"),
            snapshot_bytes=settings.number("metadata.log.max.record.bytes.between.snapshots"),
            snapshot_interval_ms=settings.number("metadata.log.max.snapshot.interval.ms"),
            retention_bytes=settings.number("metadata.max.retention.bytes"),
            retention_ms=settings.number("metadata.max.retention.ms"),
        )

    def _bind(self) -> dict[str, list[Listening]]:
        """Bind the listeners; return their sockets by name."""
        listeners, network = self._loaded.listeners, self._host.network
        addresses = [Address(each.name, each.host, each.port) for each in listeners.bound]
        try:
            # Said now, while nothing is touched; they count once the metadata is read.
            address_limits(self._loaded.settings, network)
            return bind(network, addresses, self._loaded.settings)
        except SettingsError as error:
            raise StartupError(str(error)) from error
        except OSError as error:
            where = ", ".join(str(each) for each in listeners.bound)
            hint = "; is another broker running there? choose another port"
            raise StartupError(
                f"cannot listen at {where}: {error.strerror or error}"
                + (hint if error.errno == errno.EADDRINUSE else "")
            ) from error

    def _advertise(self, parts: Parts, listening: dict[str, list[Listening]]) -> None:
        """Say where the broker and its controller are reached, now that their ports are known."""
        listeners = self._loaded.listeners
        ports = {name: places[0].port for name, places in listening.items()}
        advertise(parts, listeners, ports)
        first = listeners.broker[0]
        reachable = "127.0.0.1" if first.host in WILDCARDS else first.host
        self.bootstrap = f"{bracketed(reachable)}:{ports[first.name]}"

    def _bind_http(self) -> socket.socket | None:
        host, port = self._http_host, self._loaded.settings.number("strom.http.port")
        try:
            return bind_http(host, port) if port >= 0 else None
        except OSError as error:
            is_unknown = isinstance(error, socket.gaierror)
            # Of an address, its own text has that once more.
            reason = error.strerror if is_unknown else os.strerror(error.errno or 0)
            wrong = "host" if is_unknown or error.errno == errno.EADDRNOTAVAIL else "port"
            raise StartupError(
                f"cannot serve metrics at port {port} of {host}: {reason}; choose another "
                f"strom.http.{wrong}, or port -1 for none"
            ) from error

    async def _join(self, parts: Parts, storage: Storage) -> None:
        """Lead the quorum, register with it, and take up the partitions."""
        quorum, runtime, controller = parts.quorum, parts.runtime, parts.controller
        quorum.start()
        self._start_vital(self._keep_metadata(quorum, storage))
        bootstrap = read_bootstrap(parts.replicas.files, storage.metadata.path)
        # Decided one after the other, made durable together: one wait for the disk, not three.
        _, _, epoch = await asyncio.gather(
            runtime.execute(
                controller.bootstrap,
                bootstrap,
                min_insync_replicas=parts.settings.number("min.insync.replicas"),
            ),
            runtime.execute(controller.register_controller, self._controller_registration(parts)),
            runtime.execute(
                controller.register_broker,
                self._registration(parts, storage),
                broker_epoch=quorum.end_offset,
                has_session=False,
            ),
        )
        assert self._reports is not None
        self._epoch = self._reports.epoch = epoch
        # The image must be complete before logs are opened: what is not in it is put aside.
        parts.publisher.catch_up(parts)
        parts.publisher.apply_settings(parts)
        await parts.publisher.find_addresses(parts)
        await parts.replicas.load(parts.image, parts.settings)
        await parts.groups.follow(parts.image, parts.settings)
        await parts.transactions.follow(parts.image, parts.settings)
        self._start_vital(parts.publisher.run(parts))
        await self._reports.begin()
        await parts.publisher.wait_published()
        log.info(
            "Recorded new controller, from now on will use broker %s (id: %d rack: %s)",
            self.bootstrap,
            self._node_id,
            parts.settings.text("broker.rack") or "null",
        )
        for found, directory in parts.replicas.futures:
            parts.moves.resume(found, directory)

    def _controller_registration(self, parts: Parts) -> records.RegisterController:
        return records.RegisterController(
            controller_id=self._node_id,
            incarnation_id=self._host.new_id(),
            zk_migration_ready=False,
            end_points=recorded(parts.controller_endpoints),
            features=supported_features(),
        )

    def _registration(self, parts: Parts, storage: Storage) -> Registration:
        return Registration(
            broker_id=self._node_id,
            cluster_id=parts.cluster_id,
            incarnation_id=self._host.new_id(),
            endpoints=recorded(parts.endpoints),
            features=supported_features(),
            rack=parts.settings.text("broker.rack"),
            directories=tuple(each.id for each in storage.logs if each.id is not None),
            previous_epoch=storage.metadata.clean_epoch,
        )

    # While it runs.

    async def _take_producer_ids(self) -> Block:
        parts = self.parts
        assert parts is not None
        ids = await parts.runtime.execute(
            parts.controller.allocate_producer_ids, self._node_id, self._epoch
        )
        return Block(ids.start, len(ids))

    async def _keep_metadata(self, quorum: Quorum, storage: Storage) -> None:
        try:
            await quorum.run()
        except OSError as error:
            raise metadata_lost(storage, error) from error

    async def _report(self, storage: Storage) -> None:
        """Have the controller told of the directories; stop if nothing is left to serve with."""
        assert self._reports is not None
        await self._reports.run(storage.metadata)
        failed = ", ".join(each.path for each in storage.logs if each.failed is not None)
        self._lost = StorageLostError(f"the log directories failed that are needed: {failed}")
        self.stop()

    # Stop.

    async def _drain(self, server: Server, parts: Parts) -> None:
        """Take nothing new and answer what is under way; who only waits for data gets none."""
        server.finish()
        # Who waits for others to join, or to leave, would wait for longer than we do.
        parts.groups.close()
        parts.transactions.close()
        deadline = asyncio.get_running_loop().time() + DRAIN_SECONDS_MAX
        while asyncio.get_running_loop().time() < deadline:
            for partition in parts.replicas.partitions():
                for waiter in partition.watchers():
                    waiter.expire()
            await asyncio.sleep(DRAIN_CHECK_SECONDS)
            if all(each.is_idle for each in server.connections):
                break
        await server.hang_up()

    async def _close(self, parts: Parts, housekeeping: Housekeeping, storage: Storage) -> None:
        """Make everything durable, and say so."""
        await parts.moves.stop()
        await housekeeping.stop()
        try:
            await parts.runtime.execute(
                parts.controller.heartbeat,
                Heartbeat(self._node_id, self._epoch, want_shut_down=True),
            )
        except KafkaError as error:
            # The logs do not depend on it; the next start will put the metadata right.
            log.warning("The controller cannot be told of the stop: %s", error)
        for partition in await self._host.offload(lambda: close_logs(parts)):
            parts.replicas.check(partition)
        try:
            parts.quorum.close()
        except OSError as error:
            storage.metadata.failed = error
            self._lost = metadata_lost(storage, error)
        await housekeeping.checkpoint_all()
        storage.close(clean=True, broker_epoch=self._epoch)


def recorded(endpoints: Mapping[str, Endpoint]) -> tuple[records.Endpoint, ...]:
    """Return endpoints as other nodes are told of them, who come from anywhere."""
    return tuple(
        records.Endpoint(
            name=name,
            host=endpoint.host or socket.gethostname(),
            port=endpoint.port,
            security_protocol=PLAINTEXT,
        )
        for name, endpoint in endpoints.items()
    )


def metadata_lost(storage: Storage, error: OSError) -> StorageLostError:
    """Say that there is no metadata log any more."""
    return StorageLostError(f"the metadata log in {storage.metadata.path} failed: {told(error)}")


async def logging_faults(work: Coroutine[Any, Any, None]) -> None:
    """Do the work; what goes wrong with it is for the log."""
    try:
        await work
    except Exception:
        # A fault in one task must not end the others.
        log.exception("A task failed")


def close_logs(parts: Parts) -> list[Partition]:
    """Flush and close every log, in a thread: nobody is served any more. Return what failed."""
    failed = []
    for partition in list(parts.replicas.partitions()):
        try:
            partition.log.close()
        except OSError as error:
            log.warning("Cannot close %s-%d: %s", partition.topic, partition.index, error)
            partition.log.failed = error
            failed.append(partition)
    return failed


def load_apis() -> dict[int, Api]:
    """Import every API module; their messages load when they are first asked for."""
    modules = [import_module(f"{api.__name__}.{each.name}") for each in iter_modules(api.__path__)]
    return {each.key: each for each in sorted(map(api_of, modules), key=lambda each: each.key)}


def bracketed(host: str) -> str:
    """Write an IPv6 address as an address with a port wants it."""
    return f"[{host}]" if ":" in host else host


def first_cause(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first error that is not a group of errors."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
