"""UnregisterBroker (key 64): have the cluster forget a broker that will not come back.

Behaviour:
- A broker that is not registered is BROKER_ID_NOT_REGISTERED.
- One that serves is INVALID_REQUEST: it must be stopped, and so fenced, first. Apache Kafka forgets
  it, and such a broker then runs on without partitions until somebody restarts it.

Versions:
- v0 only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strom.broker.answers import NO_THROTTLE
from strom.broker.context import Context
from strom.broker.deciding import TIMEOUT_DEFAULT, decide
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import kafka_message

if TYPE_CHECKING:
    from kio.schema.unregister_broker.v0 import request as asked
    from kio.schema.unregister_broker.v0 import response as answer
else:
    answer = kafka_message("unregister_broker", "response")

KEY = 64
VERSIONS = range(1)


async def handle(
    request: asked.UnregisterBrokerRequest, context: Context
) -> answer.UnregisterBrokerResponse:
    """Have the controller forget the broker."""
    parts = context.parts
    code, message = ErrorCode.NONE, ""
    try:
        require_stopped(request.broker_id, context)
        await decide(parts, TIMEOUT_DEFAULT, parts.controller.unregister_broker, request.broker_id)
    except KafkaError as error:
        code, message = error.code, error.message or ""
    return answer.UnregisterBrokerResponse(
        throttle_time=NO_THROTTLE, error_code=code, error_message=message
    )


def require_stopped(broker_id: int, context: Context) -> None:
    """Refuse to forget a broker that serves."""
    broker = context.image.brokers.get(broker_id)
    if broker is not None and not broker.fenced:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Broker ID {broker_id} is in service: stop it before it is unregistered",
        )
