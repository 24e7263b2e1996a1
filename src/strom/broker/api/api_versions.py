"""ApiVersions (key 18): which APIs and versions are served, and the cluster's features.

Behaviour:
- The list is computed from the API modules; nobody keeps it by hand.
- Produce is claimed from v0 on although v0 to v2 are refused: librdkafka takes a broker without
  them for one that cannot compress (KAFKA-18659).
- The telemetry APIs are told of while somebody has subscribed to clients' metrics. As long as
  nobody has, a client that knew of them would ask, and log, for nothing.
- A version that is not known is answered in version 0's form with UNSUPPORTED_VERSION and the
  versions of this API, so that the client can ask again.
- A client's software name and version must be plain words; others get INVALID_REQUEST.

Versions:
- v3 tells the client's software, and is answered with features. v4 may say that a feature's
  lowest version is 0; older clients would choke on it and are not told of such features.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from strom.broker.answers import NO_THROTTLE
from strom.broker.context import Context
from strom.metadata.config_decisions import CLIENT_METRICS_RESOURCE
from strom.metadata.feature_decisions import KRAFT_VERSION, SUPPORTED
from strom.raft import voters
from strom.wire.errors import ErrorCode
from strom.wire.messages import kafka_message

if TYPE_CHECKING:
    from kio.schema.api_versions.v4 import request as asked
    from kio.schema.api_versions.v4 import response as answer
else:
    answer = kafka_message("api_versions", "response")

KEY = 18
VERSIONS = range(5)

PRODUCE_KEY = 0
TELEMETRY_KEYS = (71, 72)
SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
SOFTWARE_FROM = 3
#: From this version on a client understands features that may be at level 0.
ZERO_LEVELS_FROM = 4


def handle(
    request: asked.ApiVersionsRequest | None, context: Context
) -> answer.ApiVersionsResponse:
    """Tell what is served; None stands for a request in a version that is not known."""
    if request is None:
        return refused(ErrorCode.UNSUPPORTED_VERSION, context, only=KEY)
    if context.version >= SOFTWARE_FROM:
        software = (request.client_software_name, request.client_software_version)
        if not all(SOFTWARE_NAME.fullmatch(word) for word in software):
            return refused(ErrorCode.INVALID_REQUEST, context)
        context.connection.client_software = software
    return response(ErrorCode.NONE, served(context), context)


def served(context: Context, only: int | None = None) -> tuple[answer.ApiVersion, ...]:
    """List the APIs."""
    hidden = () if has_subscriptions(context) else TELEMETRY_KEYS
    return tuple(
        answer.ApiVersion(
            api_key=key, min_version=0 if key == PRODUCE_KEY else lowest, max_version=highest
        )
        for key, lowest, highest in context.parts.api_versions
        if only in (None, key) and key not in hidden
    )


def has_subscriptions(context: Context) -> bool:
    """Whether anybody wants metrics of clients."""
    return any(kind == CLIENT_METRICS_RESOURCE for kind, _ in context.image.configs)


def refused(
    code: ErrorCode, context: Context, only: int | None = None
) -> answer.ApiVersionsResponse:
    """Answer without features: either the client cannot read them or it gets nothing else."""
    keys = served(context, only) if only is not None else ()
    return answer.ApiVersionsResponse(
        error_code=code, api_keys=keys, throttle_time=NO_THROTTLE, finalized_features_epoch=-1
    )


def response(
    code: ErrorCode, keys: tuple[answer.ApiVersion, ...], context: Context
) -> answer.ApiVersionsResponse:
    """Answer with the features of the cluster."""
    image = context.image
    lowest = 0 if context.version >= ZERO_LEVELS_FROM else 1
    supported = tuple(
        answer.SupportedFeatureKey(name=name, min_version=low, max_version=high)
        for name, (low, high) in sorted(SUPPORTED.items())
        if low >= lowest
    )
    levels = {**image.features, KRAFT_VERSION: voters.KRAFT_VERSION}
    finalized = tuple(
        answer.FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
        for name, level in sorted(levels.items())
        if level
    )
    return answer.ApiVersionsResponse(
        error_code=code,
        api_keys=keys,
        throttle_time=NO_THROTTLE,
        supported_features=supported,
        finalized_features_epoch=image.end_offset,
        finalized_features=finalized,
        zk_migration_ready=False,
    )
