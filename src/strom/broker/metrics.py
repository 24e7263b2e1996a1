# Compiled by mypyc.
"""What the broker counts, and how a Prometheus server reads it.

Counting happens on the hot path, so it is plain integers in slots. They become metrics, under
names that a Kafka operator knows from the JMX exporter, when somebody asks for them; only then is
the Prometheus library loaded. Each broker has its own: several may live in one process.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from prometheus_client import Metric


class Gauge(NamedTuple):
    """A number that is asked for when it is wanted."""

    name: str
    help: str
    read: Callable[[], float]


class RequestCount:
    """How often one API was used, and how long its requests took altogether."""

    __slots__ = ("count", "total_ns")

    def __init__(self) -> None:
        self.count = 0
        self.total_ns = 0


class Metrics:
    """The counters of one broker."""

    __slots__ = (
        "_by_topic",
        "_gauges",
        "_requests",
        "_sources",
        "accepted_connections",
        "failed_requests",
        "fetched_bytes",
        "longest_stall_ms",
        "produced_bytes",
        "produced_records",
        "received_bytes",
        "refused_batches",
        "sent_bytes",
    )

    def __init__(self) -> None:
        self._requests: dict[str, RequestCount] = {}
        self._gauges: list[Gauge] = []
        #: What reads a counter's share of every topic, by the counter's name.
        self._by_topic: dict[str, Callable[[], Mapping[str, int]]] = {}
        self._sources: list[Callable[[], Iterator[Metric]]] = []
        self.accepted_connections = 0
        self.failed_requests = 0
        self.fetched_bytes = 0
        self.longest_stall_ms = 0.0
        self.produced_bytes = 0
        self.produced_records = 0
        self.received_bytes = 0
        self.refused_batches = 0
        self.sent_bytes = 0

    def note_request(self, api: str, elapsed_ns: int) -> None:
        """Count a request that was answered."""
        count = self._requests.get(api)
        if count is None:
            count = self._requests[api] = RequestCount()
        count.count += 1
        count.total_ns += elapsed_ns

    def add_gauge(self, name: str, help_text: str, read: Callable[[], float]) -> None:
        """Show a number that somebody else keeps."""
        self._gauges.append(Gauge(name, help_text, read))

    def add_topics(self, name: str, read: Callable[[], Mapping[str, int]]) -> None:
        """Show of a counter what each topic has of it too."""
        self._by_topic[name] = read

    def add_source(self, collect: Callable[[], Iterator["Metric"]]) -> None:
        """Show metrics that somebody else has: called on the loop, gone through in any thread."""
        self._sources.append(collect)

    def collect(self) -> Iterator["Metric"]:
        """Return everything as it is now, in the form that the Prometheus library writes.

        What somebody else has may take that form only when it is gone through, in any thread.
        """
        return chain(list(self._counted()), *[collect() for collect in self._sources])

    def _counted(self) -> Iterator["Metric"]:
        """Yield what is counted here, and what is asked for."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        for name, help_text, value in self._counters():
            counter = CounterMetricFamily(name, help_text, value=value)
            if name in self._by_topic:
                for topic, share in sorted(self._by_topic[name]().items()):
                    counter.add_sample(f"{name}_total", {"topic": topic}, share)
            yield counter
        for gauge in self._gauges:
            yield GaugeMetricFamily(gauge.name, gauge.help, value=gauge.read())
        requests = CounterMetricFamily(
            "kafka_network_requestmetrics_requests", "Requests answered.", labels=["request"]
        )
        seconds = CounterMetricFamily(
            "kafka_network_requestmetrics_totaltime_seconds",
            "Time from a request to its answer, waits included.",
            labels=["request"],
        )
        for api, count in sorted(self._requests.items()):
            label = ["".join(word.capitalize() for word in api.split("_"))]
            requests.add_metric(label, count.count)
            seconds.add_metric(label, count.total_ns / 1e9)
        yield requests
        yield seconds

    def _counters(self) -> Iterable[tuple[str, str, float]]:
        topic = "kafka_server_brokertopicmetrics_"
        return (
            (topic + "bytesin", "Bytes of records appended.", self.produced_bytes),
            (topic + "bytesout", "Bytes of records fetched.", self.fetched_bytes),
            (topic + "messagesin", "Records appended.", self.produced_records),
            (topic + "failedproducerequests", "Batches refused.", self.refused_batches),
            ("kafka_network_received_bytes", "Bytes of requests.", self.received_bytes),
            ("kafka_network_sent_bytes", "Bytes of answers.", self.sent_bytes),
            ("kafka_network_connections_accepted", "Connections.", self.accepted_connections),
            ("kafka_network_failed_requests", "Requests that failed.", self.failed_requests),
        )
