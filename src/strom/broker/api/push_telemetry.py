"""PushTelemetry (key 72): a client's metrics, which are then shown on /metrics.

Behaviour:
- Checked in this order: the client's id (INVALID_REQUEST), whether it has pushed its last
  (INVALID_REQUEST) or is early (THROTTLING_QUOTA_EXCEEDED; the last push may be early), the id of
  its subscription (UNKNOWN_SUBSCRIPTION_ID), the codec (UNSUPPORTED_COMPRESSION_TYPE), the size
  (TELEMETRY_TOO_LARGE, `telemetry.max.bytes`), the metrics themselves (INVALID_RECORD).
- Metrics are read in a thread. With its last push a client leaves /metrics.

Versions:
- v0 only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strom.broker.answers import NO_THROTTLE
from strom.broker.context import Context
from strom.broker.otlp import read_push
from strom.broker.telemetry import RESERVED_IDS, client_of, require
from strom.records.compression import Codec
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import kafka_message

if TYPE_CHECKING:
    from kio.schema.push_telemetry.v0 import request as asked
    from kio.schema.push_telemetry.v0 import response as answer
else:
    answer = kafka_message("push_telemetry", "response")

KEY = 72
VERSIONS = range(1)


async def handle(
    request: asked.PushTelemetryRequest, context: Context
) -> answer.PushTelemetryResponse:
    """Take the metrics in."""
    try:
        await take(request, context)
    except KafkaError as error:
        return answer.PushTelemetryResponse(throttle_time=NO_THROTTLE, error_code=error.code)
    return answer.PushTelemetryResponse(throttle_time=NO_THROTTLE, error_code=ErrorCode.NONE)


async def take(request: asked.PushTelemetryRequest, context: Context) -> None:
    """Check the push, read it off the loop, keep its numbers."""
    telemetry = context.parts.telemetry
    telemetry.follow(context.image.configs)
    instance_id = request.client_instance_id
    if instance_id is None or instance_id in RESERVED_IDS:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    telemetry.admit(
        instance_id,
        client_of(instance_id, context),
        request.subscription_id,
        ending=request.terminating,
        now_ms=context.now_ms,
    )
    codec, data = request.compression_type, request.metrics
    bytes_max = context.settings.number("telemetry.max.bytes")
    require(codec in tuple(Codec), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    require(len(data) <= bytes_max, ErrorCode.TELEMETRY_TOO_LARGE)
    if data:
        samples = await context.parts.host.offload(lambda: read_push(codec, data, bytes_max))
        telemetry.take(instance_id, samples)
    if request.terminating:
        telemetry.forget(instance_id)
