"""Reads the metrics that clients push: OpenTelemetry's MetricsData, as protobuf.

The package with its messages is large and seldom needed: it is loaded with the first push, and a
broker without it (the extra `telemetry`) takes pushes, shows nothing of them, and says so once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING

from strom.broker.telemetry import Attributes, Sample
from strom.records.compression import decompress
from strom.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from opentelemetry.proto.common.v1.common_pb2 import KeyValue
    from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, NumberDataPoint

log = logging.getLogger("strom.telemetry")

#: How many times its size on the wire a push may grow to; Kafka's zstd reaches about ten.
EXPANSION_MAX = 16
DELTA = 1


def read_push(codec: int, data: bytes, bytes_max: int) -> list[Sample]:
    """Return the numbers in a push; INVALID_RECORD for what is no such thing. For a thread."""
    try:
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
    except ImportError:
        warn_of_missing_package()
        return []
    message = MetricsData()
    try:
        message.ParseFromString(decompress(codec, data, size_bytes_max=bytes_max * EXPANSION_MAX))
    except (KafkaError, DecodeError) as error:
        raise KafkaError(ErrorCode.INVALID_RECORD) from error
    return [
        sample
        for resource in message.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        for sample in samples_of(metric)
    ]


@cache
def warn_of_missing_package() -> None:
    """Say once that clients' metrics are not shown, and what would change that."""
    log.warning("Metrics of clients are taken and not shown: pip install strom[telemetry]")


def samples_of(metric: Metric) -> Iterator[Sample]:
    """Yield the numbers of one metric: a gauge, a sum, or a histogram's count and sum."""
    kind = metric.WhichOneof("data")
    if kind == "gauge":
        yield from plain(metric.name, metric.gauge.data_points, is_delta=False)
    elif kind == "sum":
        is_delta = metric.sum.aggregation_temporality == DELTA
        yield from plain(metric.name, metric.sum.data_points, is_delta=is_delta)
    elif kind == "histogram":
        is_delta = metric.histogram.aggregation_temporality == DELTA
        for point in metric.histogram.data_points:
            attributes = attributes_of(point.attributes)
            yield Sample(f"{metric.name}.count", attributes, float(point.count), is_delta)
            yield Sample(f"{metric.name}.sum", attributes, point.sum, is_delta)


def plain(name: str, points: Iterable[NumberDataPoint], *, is_delta: bool) -> Iterator[Sample]:
    """Yield the numbers of a gauge or a sum."""
    for point in points:
        value = point.as_double if point.WhichOneof("value") == "as_double" else point.as_int
        yield Sample(name, attributes_of(point.attributes), float(value), is_delta)


def attributes_of(pairs: Iterable[KeyValue]) -> Attributes:
    """Return what tells a number from its siblings, as text."""
    return tuple(sorted((pair.key, text_of(pair)) for pair in pairs))


def text_of(pair: KeyValue) -> str:
    """Return an attribute's value; one that is no single value is left empty."""
    kind = pair.value.WhichOneof("value")
    if kind in ("string_value", "bool_value", "int_value", "double_value"):
        return str(getattr(pair.value, kind))
    return ""
