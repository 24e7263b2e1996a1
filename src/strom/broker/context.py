# Compiled by mypyc.
"""What a handler may use: the broker's parts, and who is asking."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from uuid import UUID

from strom.metadata.topic_decisions import Defaults

if TYPE_CHECKING:
    from strom.broker.connection import Connection
    from strom.broker.coordination import Coordinators
    from strom.broker.flushing import Flushing
    from strom.broker.host import Host
    from strom.broker.markers import Markers
    from strom.broker.metrics import Metrics
    from strom.broker.moves import Moves
    from strom.broker.producer_ids import ProducerIds
    from strom.broker.publisher import Publisher
    from strom.broker.quorum import Quorum
    from strom.broker.replicas import Replicas
    from strom.broker.sessions import FetchSessions
    from strom.broker.telemetry import Telemetry
    from strom.groups.machine import GroupMachine
    from strom.metadata.controller import Controller
    from strom.metadata.image import Broker, Image
    from strom.metadata.records import Record
    from strom.metadata.settings.values import BrokerSettings
    from strom.replicated.runtime import Runtime
    from strom.transactions.machine import TransactionMachine
    from strom.wire.codec import RequestHeader


class Ordered(NamedTuple):
    """An append phase that needs to wait; nothing overtakes it on its connection."""

    work: Coroutine[None, None, object]


class Together:
    """An append phase that ends together with those of the requests that came with it.

    That is within the same turn of the loop, before a request of any other kind is served.
    """

    __slots__ = ()

    def finish(self) -> object:
        """End it, and return a reply."""
        raise NotImplementedError


class Awaited(Protocol):
    """What calls back, once, when it is over: partitions that grow, or a coordinator."""

    def tell(self, whom: Callable[[Any], None]) -> None:
        """Call back, in a turn of its own, with how it ended."""

    def cancel(self) -> None:
        """Tell nobody."""

    def wait(self) -> Coroutine[Any, Any, Any]:
        """Return how it ended, for who has a task."""


class Waiting(NamedTuple):
    """An answer that waits for one thing, and takes no task for that."""

    waiter: Awaited
    #: Looks at how the wait ended, and returns a reply.
    look: Callable[[Any], object]


class Large(NamedTuple):
    """An answer that takes long to put together and to write: both are done off the loop."""

    build: Callable[[], object]


class Endpoint(NamedTuple):
    """Where clients of a listener reach a broker."""

    host: str
    port: int


class Parts:
    """The broker's parts, as `broker.py` put them together.

    The image and the settings are replaced, by the publisher and by nobody else; a handler
    that awaits must take them again afterwards.

    - `api_versions`: key, lowest and highest version of every API served.
    - `address_limits`: how many connections single addresses may have; changes with the settings.
    - `endpoints`: by listener name, what this broker tells its clients to connect to.
    - `controller_endpoints`: likewise, where those who ask for controllers reach this node's.
    """

    def __init__(  # noqa: PLR0913 - all parts, each with its name
        self,
        *,
        node_id: int,
        cluster_id: str,
        host: Host,
        settings: BrokerSettings,
        image: Image,
        replicas: Replicas,
        flushing: Flushing,
        controller: Controller,
        runtime: Runtime[Record],
        quorum: Quorum,
        publisher: Publisher,
        producer_ids: ProducerIds,
        fetch_sessions: FetchSessions,
        metrics: Metrics,
        moves: Moves,
        telemetry: Telemetry,
        groups: Coordinators[GroupMachine],
        transactions: Coordinators[TransactionMachine],
        markers: Markers,
    ) -> None:
        self.node_id = node_id
        self.cluster_id = cluster_id
        self.host = host
        self.settings = settings
        self.image = image
        self.replicas = replicas
        self.flushing = flushing
        self.controller = controller
        self.runtime = runtime
        self.quorum = quorum
        self.publisher = publisher
        self.producer_ids = producer_ids
        self.fetch_sessions = fetch_sessions
        self.metrics = metrics
        self.moves = moves
        self.telemetry = telemetry
        self.groups = groups
        self.transactions = transactions
        self.markers = markers
        #: The names of topics that were asked for, by ids as numbers, which are hashed faster.
        self._names: dict[int, str] = {}
        self._names_of = image
        self.api_versions: tuple[tuple[int, int, int], ...] = ()
        self.address_limits: dict[str, int] = {}
        self.endpoints: dict[str, Endpoint] = {}
        self.controller_endpoints: dict[str, Endpoint] = {}

    def topic_name(self, topic_id: UUID) -> str | None:
        """Return the name of the topic with this id, if there is one."""
        if self._names_of is not self.image:
            self._names, self._names_of = {}, self.image
        name = self._names.get(topic_id.int)
        if name is None:
            topic = self.image.topics_by_id.get(topic_id)
            if topic is None:
                return None
            name = self._names[topic_id.int] = topic.name
        return name


class Context:
    """One request's surroundings."""

    __slots__ = ("connection", "header", "parts")

    def __init__(self, parts: Parts, connection: Connection, header: RequestHeader) -> None:
        self.parts = parts
        self.connection = connection
        self.header = header

    @property
    def version(self) -> int:
        """The version that the client asked in."""
        return self.header.version

    @property
    def image(self) -> Image:
        """The cluster as this broker knows it now."""
        return self.parts.image

    @property
    def settings(self) -> BrokerSettings:
        """The broker's settings now."""
        return self.parts.settings

    @property
    def replicas(self) -> Replicas:
        """The partitions that this broker holds."""
        return self.parts.replicas

    @property
    def now_ms(self) -> int:
        """The time of day."""
        return self.parts.host.now_ms()

    @property
    def topic_defaults(self) -> Defaults:
        """What a topic gets that does not ask for anything else."""
        settings = self.parts.settings
        return Defaults(
            settings.number("num.partitions"), settings.number("default.replication.factor")
        )

    def endpoint_of(self, broker: Broker) -> Endpoint | None:
        """Return where a client of this listener reaches a broker; None if it is told of none."""
        if broker.id == self.parts.node_id:
            return self._reachable(self.parts.endpoints.get(self.connection.listener))
        for each in broker.endpoints:
            if each.name == self.connection.listener:
                return Endpoint(each.host, each.port)
        return None

    def reachable_brokers(self) -> frozenset[int]:
        """Return the brokers that serve, and that a client of this listener is told of."""
        brokers = self.image.brokers.values()
        return frozenset(
            each.id for each in brokers if not each.fenced and self.endpoint_of(each) is not None
        )

    @property
    def controller_endpoint(self) -> Endpoint | None:
        """Where who came by a controller's listener reaches this controller; None for others."""
        return self._reachable(self.parts.controller_endpoints.get(self.connection.listener))

    def _reachable(self, endpoint: Endpoint | None) -> Endpoint | None:
        if endpoint is None or endpoint.host:
            return endpoint
        # Nobody said what to advertise: the address that the client came to works for it.
        return endpoint._replace(host=self.connection.came_to)

    def topic_name(self, topic_id: UUID) -> str | None:
        """Return the name of the topic with this id, if there is one."""
        return self.parts.topic_name(topic_id)
