"""DescribeCluster (key 60): the cluster's id, its controller and its brokers.

Behaviour:
- Brokers are told with the address of the listener that the client came by; fenced ones only to
  who asks for them.
- A listener of the controller tells of controllers, and one of the broker of brokers (KIP-919); who
  asks one for the other is told so.

Versions:
- v1 has the endpoint type; v2 fenced brokers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strom.broker.answers import CLUSTER_OPERATIONS, NO_THROTTLE, NOT_ASKED
from strom.broker.context import Context, Endpoint
from strom.wire.errors import ErrorCode
from strom.wire.messages import kafka_message

if TYPE_CHECKING:
    from kio.schema.describe_cluster.v2 import request as asked
    from kio.schema.describe_cluster.v2 import response as answer
else:
    answer = kafka_message("describe_cluster", "response")

KEY = 60
VERSIONS = range(3)

BROKERS = 1
CONTROLLERS = 2
#: For who cannot be sent to the controller, since it is not advertised where the client came by.
NOBODY = -1
KINDS = {BROKERS: "BROKER", CONTROLLERS: "CONTROLLER"}


def handle(
    request: asked.DescribeClusterRequest, context: Context
) -> answer.DescribeClusterResponse:
    """Describe the cluster from the image."""
    controller = context.controller_endpoint
    came_to = BROKERS if controller is None else CONTROLLERS
    wanted = request.endpoint_type
    if wanted not in KINDS:
        return refusal(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {wanted}")
    if wanted != came_to:
        return refusal(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            f"The request was sent to an endpoint of type {KINDS[came_to]}, but we wanted an "
            f"endpoint of type {KINDS[wanted]}",
        )
    allowed = request.include_cluster_authorized_operations
    told = (
        brokers(context, fenced_too=request.include_fenced_brokers)
        if controller is None
        else controllers(context, controller)
    )
    leader = context.parts.quorum.leader_id
    return answer.DescribeClusterResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.NONE,
        endpoint_type=came_to,
        cluster_id=context.parts.cluster_id,
        controller_id=leader if leader in [each.broker_id for each in told] else NOBODY,
        brokers=told,
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


def controllers(context: Context, endpoint: Endpoint) -> tuple[answer.DescribeClusterBroker, ...]:
    """List the controllers, of which there is this one."""
    return (
        answer.DescribeClusterBroker(
            broker_id=context.parts.node_id,
            host=endpoint.host,
            port=endpoint.port,
            rack=None,
            is_fenced=False,
        ),
    )


def refusal(code: ErrorCode, message: str) -> answer.DescribeClusterResponse:
    """Say why nothing is described."""
    return answer.DescribeClusterResponse(
        throttle_time=NO_THROTTLE, error_code=code, error_message=message, cluster_id="", brokers=()
    )
