"""DescribeCluster (key 60): the cluster's id, its controller and its brokers.

Behaviour:
- Brokers are told with the address of the listener that the client came by; fenced ones only to
  who asks for them.
- A client that wants to hear of controllers is told that it asked a broker.

Versions:
- v1 has the endpoint type; v2 fenced brokers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strom.broker.answers import CLUSTER_OPERATIONS, NO_THROTTLE, NOT_ASKED
from strom.broker.context import Context
from strom.wire.errors import ErrorCode
from strom.wire.lazy import lazy

if TYPE_CHECKING:
    from kio.schema.describe_cluster.v2 import request as asked
    from kio.schema.describe_cluster.v2 import response as answer
else:
    answer = lazy("kio.schema.describe_cluster.v2.response")

KEY = 60
VERSIONS = range(3)

BROKERS = 1
CONTROLLERS = 2


def handle(
    request: asked.DescribeClusterRequest, context: Context
) -> answer.DescribeClusterResponse:
    """Describe the cluster from the image."""
    if request.endpoint_type == CONTROLLERS:
        return refusal(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of "
            "type CONTROLLER",
        )
    if request.endpoint_type != BROKERS:
        return refusal(
            ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            f"Unsupported endpoint type {request.endpoint_type}",
        )
    allowed = request.include_cluster_authorized_operations
    return answer.DescribeClusterResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.NONE,
        endpoint_type=BROKERS,
        cluster_id=context.parts.cluster_id,
        controller_id=context.parts.quorum.leader_id,
        brokers=brokers(context, fenced_too=request.include_fenced_brokers),
        cluster_authorized_operations=CLUSTER_OPERATIONS if allowed else NOT_ASKED,
    )


def brokers(context: Context, *, fenced_too: bool) -> tuple[answer.DescribeClusterBroker, ...]:
    """List the brokers as the client can reach them."""
    return tuple(
        answer.DescribeClusterBroker(
            broker_id=broker.id,
            host=endpoint.host,
            port=endpoint.port,
            rack=broker.rack,
            is_fenced=broker.fenced,
        )
        for _, broker in sorted(context.image.brokers.items())
        if (fenced_too or not broker.fenced)
        and (endpoint := context.endpoint_of(broker)) is not None
    )


def refusal(code: ErrorCode, message: str) -> answer.DescribeClusterResponse:
    """Say why nothing is described."""
    return answer.DescribeClusterResponse(
        throttle_time=NO_THROTTLE, error_code=code, error_message=message, cluster_id="", brokers=()
    )
