"""Clients' own metrics (KIP-714): who is asked for what, who may push, and what came in.

A subscription is a client-metrics resource: which clients it means (`match`), which metrics it
wants of them (`metrics`, prefixes of names) and how often (`interval.ms`). What the
subscriptions say to a client together has an id; a client that pushes under another id is told
to ask again. A client asks and pushes once per interval, and once more when it ends.

Nothing here is durable. A broker that starts anew knows no clients: they ask again.
"""

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from crc32c import crc32c

from strom.metadata.config_decisions import CLIENT_METRICS_RESOURCE
from strom.records.compression import Codec
from strom.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from prometheus_client import Metric

    from strom.broker.context import Context

INTERVAL_DEFAULT_MS = 300_000
ALL_METRICS = "*"
#: As many clients as Kafka remembers; who was silent longest is forgotten first.
CLIENTS_MAX = 16_384
#: What one page of /metrics can reasonably hold.
SERIES_MAX = 20_000
SERIES_PER_CLIENT_MAX = 1_000
#: What the name of a series and its attributes may take together.
SERIES_TEXT_MAX = 1_000
#: Kafka's order: the first is what clients prefer.
ACCEPTED_CODECS = (Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY)
#: Kafka has a meaning of its own for these.
RESERVED_IDS = frozenset({UUID(int=0), UUID(int=1)})

NOBODY = re.compile(r"(?!)")

Attributes = tuple[tuple[str, str], ...]
#: What one client has pushed: name and attributes, and the number.
Series = tuple[tuple[tuple[str, Attributes], float], ...]


class Sample(NamedTuple):
    """One number of one client."""

    name: str
    attributes: Attributes
    value: float
    #: The value is what was added since the last push.
    is_delta: bool

    @property
    def text_length(self) -> int:
        """How long all that tells the number from others is."""
        return len(self.name) + sum(len(key) + len(value) for key, value in self.attributes)


class Client(NamedTuple):
    """What is known of a client that a subscription can ask about."""

    client_instance_id: str
    client_id: str
    client_software_name: str
    client_software_version: str
    client_source_address: str
    client_source_port: str


def client_of(instance_id: UUID, context: "Context") -> Client:
    """Describe the client that asks, by what its connection and its request say."""
    connection = context.connection
    address, port = connection.address[:2]
    return Client(
        str(instance_id),
        context.header.client_id or "",
        *connection.client_software,
        address,
        str(port),
    )


class Subscription(NamedTuple):
    """One client-metrics resource."""

    patterns: tuple[tuple[str, re.Pattern[str]], ...]
    metrics: tuple[str, ...]
    interval_ms: int

    def means(self, client: Client) -> bool:
        """Whether the client is one of those meant."""
        return all(pattern.fullmatch(getattr(client, key)) for key, pattern in self.patterns)


class Wanted(NamedTuple):
    """What all subscriptions together want of one client."""

    subscription_id: int
    metrics: tuple[str, ...]
    interval_ms: int


@dataclass(slots=True)
class Instance:
    """A client that has been heard of."""

    client: Client
    wanted: Wanted
    asked_ms: int | None = None
    pushed_ms: int | None = None
    is_ending: bool = False
    series: dict[tuple[str, Attributes], float] = field(default_factory=dict)

    def may_ask(self, now_ms: int) -> bool:
        """Whether an interval has passed since it was last heard of."""
        latest = max(self.asked_ms or 0, self.pushed_ms or 0)
        return now_ms - latest >= self.wanted.interval_ms

    def may_push(self, now_ms: int) -> bool:
        """Whether it has not pushed since it asked, or not for an interval."""
        if self.pushed_ms is None or (self.asked_ms is not None and self.asked_ms > self.pushed_ms):
            return True
        return now_ms - self.pushed_ms >= self.wanted.interval_ms


class Telemetry:
    """The clients that push metrics to this broker."""

    __slots__ = ("_configs", "_instances", "_series", "_subscriptions", "dropped_samples")

    def __init__(self) -> None:
        #: The one heard of last comes last.
        self._instances: OrderedDict[UUID, Instance] = OrderedDict()
        self._subscriptions: tuple[Subscription, ...] = ()
        self._configs: Mapping[tuple[int, str], Mapping[str, str]] | None = None
        #: How many series all clients together have.
        self._series = 0
        self.dropped_samples = 0

    def follow(self, configs: Mapping[tuple[int, str], Mapping[str, str]]) -> None:
        """Take the subscriptions from the settings of all resources, if those have changed."""
        # The map is immutable, so the same map has the same content.
        if configs is self._configs:
            return
        self._configs = configs
        self._subscriptions = tuple(
            read_subscription(configs[resource])
            for resource in sorted(configs)
            if resource[0] == CLIENT_METRICS_RESOURCE
        )

    def ask(self, instance_id: UUID, client: Client, now_ms: int) -> Wanted:
        """Return what is wanted of the client."""
        instance = self._instance(instance_id, client)
        if instance.asked_ms is not None or instance.pushed_ms is not None:
            require(instance.may_ask(now_ms), ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        instance.asked_ms = now_ms
        return instance.wanted

    def admit(
        self, instance_id: UUID, client: Client, subscription_id: int, *, ending: bool, now_ms: int
    ) -> None:
        """Refuse a push that comes too early, after the last one, or under an old id."""
        instance = self._instance(instance_id, client)
        require(not instance.is_ending, ErrorCode.INVALID_REQUEST)
        may_push = instance.may_push(now_ms)
        require(may_push or ending, ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        instance.is_ending = ending
        instance.pushed_ms = now_ms
        known = instance.wanted.subscription_id == subscription_id
        require(known, ErrorCode.UNKNOWN_SUBSCRIPTION_ID)

    def take(self, instance_id: UUID, samples: Iterable[Sample]) -> None:
        """Keep the numbers of a push."""
        instance = self._instances.get(instance_id)
        if instance is None:
            return
        series = instance.series
        for sample in samples:
            key = sample.name, sample.attributes
            if key in series:
                series[key] = sample.value + (series[key] if sample.is_delta else 0)
            elif (
                len(series) < SERIES_PER_CLIENT_MAX
                and self._series < SERIES_MAX
                and sample.text_length <= SERIES_TEXT_MAX
            ):
                series[key] = sample.value
                self._series += 1
            else:
                self.dropped_samples += 1

    def forget(self, instance_id: UUID) -> None:
        """Show no more of a client that has ended, but know that it has."""
        instance = self._instances.get(instance_id)
        if instance is not None:
            self._series -= len(instance.series)
            instance.series = {}

    def _instance(self, instance_id: UUID, client: Client) -> Instance:
        """Return what is known of the client, with what is wanted of it now."""
        wanted = wanted_of(instance_id, client, self._subscriptions)
        instance = self._instances.get(instance_id)
        if instance is None:
            instance = Instance(client, wanted)
            self._instances[instance_id] = instance
            self._forget_oldest()
        elif instance.wanted != wanted:
            # Under new terms it may ask, and push, at once.
            instance.wanted = wanted
            instance.asked_ms = instance.pushed_ms = None
        self._instances.move_to_end(instance_id)
        return instance

    def _forget_oldest(self) -> None:
        while len(self._instances) > CLIENTS_MAX:
            _, gone = self._instances.popitem(last=False)
            self._series -= len(gone.series)

    def collect(self) -> "Iterator[Metric]":
        """Return the clients' metrics of now, in the form that the Prometheus library writes.

        They are many: they take that form when they are gone through, which may be in a thread.
        """
        pushed = [
            (each.client, tuple(each.series.items()))
            for each in self._instances.values()
            if each.series
        ]
        return exposed_metrics(len(self._instances), pushed)


def require(condition: bool, code: ErrorCode) -> None:
    """Refuse with the code unless the condition holds."""
    if not condition:
        raise KafkaError(code)


def read_subscription(config: Mapping[str, str]) -> Subscription:
    """Read what is set for one client-metrics resource; the controller has checked it."""
    patterns = []
    for item in items(config.get("match", "")):
        key, _, pattern = item.partition("=")
        patterns.append((key.strip(), compiled(pattern.strip())))
    interval_ms = int(config.get("interval.ms", INTERVAL_DEFAULT_MS))
    return Subscription(tuple(patterns), items(config.get("metrics", "")), interval_ms)


def compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern; one that only Java understands means nobody."""
    try:
        return re.compile(pattern)
    except re.error:
        return NOBODY


def items(text: str) -> tuple[str, ...]:
    """Split a list as it is written in a setting."""
    return tuple(filter(None, (each.strip() for each in text.split(","))))


def wanted_of(instance_id: UUID, client: Client, subscriptions: Iterable[Subscription]) -> Wanted:
    """Add up what the subscriptions want of the client: all the metrics, at the shortest interval.

    The id differs from client to client, so that two of them are not mistaken for each other.
    """
    meant = [each for each in subscriptions if each.metrics and each.means(client)]
    names = {name for each in meant for name in each.metrics}
    metrics = (ALL_METRICS,) if ALL_METRICS in names else tuple(sorted(names))
    interval_ms = min((each.interval_ms for each in meant), default=INTERVAL_DEFAULT_MS)
    terms = crc32c(f"{metrics}{interval_ms}".encode()) ^ crc32c(instance_id.bytes)
    return Wanted(terms - (1 << 32) if terms >> 31 else terms, metrics, interval_ms)


def exposed_metrics(count: int, pushed: Iterable[tuple[Client, Series]]) -> "Iterator[Metric]":
    """Yield how many clients there are, and what they have pushed."""
    from prometheus_client.core import GaugeMetricFamily, Metric

    yield GaugeMetricFamily(
        "kafka_server_clientmetrics_instances", "Clients whose metrics are known.", value=count
    )
    families: dict[str, Metric] = {}
    for client, series in pushed:
        own = {"client_instance_id": client.client_instance_id, "client_id": client.client_id}
        for (name, attributes), value in series:
            exposed = exposed_name(name)
            family = families.get(exposed)
            if family is None:
                family = Metric(exposed, f"{name}, pushed by clients.", "gauge")
                families[exposed] = family
            labels = {exposed_name(key): text for key, text in attributes}
            family.add_sample(exposed, labels | own, value)
    yield from families.values()


def exposed_name(name: str) -> str:
    """Return the name with the characters that Prometheus allows."""
    cleaned = re.sub(r"[^a-zA-Z0-9_]", "_", name)
    return f"_{cleaned}" if cleaned[:1].isdigit() or not cleaned else cleaned
