"""GetTelemetrySubscriptions (key 71): which of its metrics a client should push, how often.

Behaviour:
- A client without an id is given one. What is wanted of it follows from the client-metrics
  resources that mean it; without any, nothing, and it asks again after five minutes.
- A client that asks again before its interval is over is told THROTTLING_QUOTA_EXCEEDED.

Versions:
- v0 only.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from strom.broker.answers import NO_THROTTLE
from strom.broker.context import Context
from strom.broker.telemetry import ACCEPTED_CODECS, RESERVED_IDS, client_of
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import kafka_message

if TYPE_CHECKING:
    from kio.schema.get_telemetry_subscriptions.v0 import request as asked
    from kio.schema.get_telemetry_subscriptions.v0 import response as answer
else:
    answer = kafka_message("get_telemetry_subscriptions", "response")

KEY = 71
VERSIONS = range(1)


def handle(
    request: asked.GetTelemetrySubscriptionsRequest, context: Context
) -> answer.GetTelemetrySubscriptionsResponse:
    """Tell the client what is wanted of it."""
    telemetry = context.parts.telemetry
    telemetry.follow(context.image.configs)
    instance_id = request.client_instance_id or new_id(context)
    try:
        wanted = telemetry.ask(instance_id, client_of(instance_id, context), context.now_ms)
    except KafkaError as error:
        return refusal(error.code)
    return answer.GetTelemetrySubscriptionsResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.NONE,
        client_instance_id=instance_id,
        subscription_id=wanted.subscription_id,
        accepted_compression_types=ACCEPTED_CODECS,
        push_interval=timedelta(milliseconds=wanted.interval_ms),
        telemetry_max_bytes=context.settings.number("telemetry.max.bytes"),
        delta_temporality=True,
        requested_metrics=wanted.metrics,
    )


def new_id(context: Context) -> UUID:
    """Return an id that means nothing else."""
    while (drawn := context.parts.host.new_id()) in RESERVED_IDS:
        pass
    return drawn


def refusal(code: ErrorCode) -> answer.GetTelemetrySubscriptionsResponse:
    """Say why the client is told nothing."""
    return answer.GetTelemetrySubscriptionsResponse(
        throttle_time=NO_THROTTLE,
        error_code=code,
        client_instance_id=None,
        subscription_id=0,
        accepted_compression_types=(),
        push_interval=NO_THROTTLE,
        telemetry_max_bytes=0,
        delta_temporality=False,
        requested_metrics=(),
    )
