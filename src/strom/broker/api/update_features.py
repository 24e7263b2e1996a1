"""UpdateFeatures (key 57): move features of the cluster to other levels.

Behaviour:
- All features move or none does; the reason is that of the first that cannot.
- A level goes down only if the client allows it; `metadata.version` never does.
- The client's time is not looked at, as in Kafka.

Versions:
- v0 has a flag where v1 says which way a level may go. v0 and v1 answer feature by feature if
  all went well; v2 has one code for all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from strom.broker.answers import NO_THROTTLE
from strom.broker.context import Context
from strom.broker.deciding import TIMEOUT_DEFAULT, decide
from strom.metadata.feature_decisions import FeatureUpdate, UpgradeType
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.messages import kafka_message

if TYPE_CHECKING:
    from kio.schema.update_features.v1 import response as answer
    from kio.schema.update_features.v2 import request as asked
else:
    asked = kafka_message("update_features", "request")
    answer = kafka_message("update_features", "response")

KEY = 57
VERSIONS = range(3)

WAYS_FROM = 1

#: Kafka puts the name of the code where a message would be.
NO_ERROR_TEXT = "NONE"

WAYS = {int(way): way for way in UpgradeType}


def upgrade(request: Any, version: int) -> None:  # noqa: ANN401 - with fields of older versions
    """Read the flag of the oldest version."""
    if version >= WAYS_FROM:
        return
    for update in request.feature_updates:
        downgrades = update.allow_downgrade
        update.upgrade_type = UpgradeType.SAFE_DOWNGRADE if downgrades else UpgradeType.UPGRADE


async def handle(
    request: asked.UpdateFeaturesRequest, context: Context
) -> answer.UpdateFeaturesResponse:
    """Have the controller move the levels."""
    parts = context.parts
    code, message, done = (
        ErrorCode.NONE,
        None,
        tuple(each.feature for each in request.feature_updates),
    )
    try:
        await decide(
            parts,
            TIMEOUT_DEFAULT,
            parts.controller.update_features,
            [read_update(each) for each in request.feature_updates],
            validate_only=request.validate_only,
        )
    except KafkaError as error:
        code, message, done = error.code, error.message, ()
    # Up to version 1 the answer is given feature by feature.
    results = tuple(
        answer.UpdatableFeatureResult(
            feature=name, error_code=ErrorCode.NONE, error_message=NO_ERROR_TEXT
        )
        for name in done
    )
    return answer.UpdateFeaturesResponse(
        throttle_time=NO_THROTTLE, error_code=code, error_message=message, results=results
    )


def read_update(update: asked.FeatureUpdateKey) -> FeatureUpdate:
    """Read what is asked for one feature."""
    way = WAYS.get(update.upgrade_type, UpgradeType.UNKNOWN)
    return FeatureUpdate(update.feature, update.max_version_level, way)
