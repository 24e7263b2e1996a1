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

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from strom.broker.answers import NO_THROTTLE
from strom.broker.context import Context
from strom.broker.deciding import TIMEOUT_DEFAULT, decide
from strom.metadata.feature_decisions import FeatureUpdate, UpgradeType
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.lazy import import_schema, lazy

if TYPE_CHECKING:
    from kio.schema.update_features.v2 import request as asked
    from kio.schema.update_features.v2 import response as answer
else:
    asked = lazy("kio.schema.update_features.v2.request")
    answer = lazy("kio.schema.update_features.v2.response")

KEY = 57
VERSIONS = range(3)

#: Kafka puts the name of the code where a message would be.
NO_ERROR_TEXT = "NONE"

WAYS = {int(way): way for way in UpgradeType}


@dataclass(frozen=True, slots=True)
class AnswerByFeature:
    """An answer that older versions give feature by feature."""

    response: answer.UpdateFeaturesResponse
    features: tuple[str, ...]

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self.response, name)


def upgrade(old: Any, request: asked.UpdateFeaturesRequest) -> asked.UpdateFeaturesRequest:  # noqa: ANN401
    """Read the flag of the oldest version."""
    if old.__version__ > 0:
        return request
    updates = tuple(
        replace(
            update,
            upgrade_type=UpgradeType.SAFE_DOWNGRADE
            if before.allow_downgrade
            else UpgradeType.UPGRADE,
        )
        for before, update in zip(old.feature_updates, request.feature_updates, strict=True)
    )
    return replace(request, feature_updates=updates)


def downgrade(response: AnswerByFeature, old: Any) -> Any:  # noqa: ANN401
    """Answer feature by feature."""
    result = import_schema(type(old).__module__).UpdatableFeatureResult
    return replace(
        old,
        results=tuple(
            result(feature=name, error_code=ErrorCode.NONE, error_message=NO_ERROR_TEXT)
            for name in response.features
        ),
    )


async def handle(
    request: asked.UpdateFeaturesRequest, context: Context
) -> answer.UpdateFeaturesResponse | AnswerByFeature:
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
    response = answer.UpdateFeaturesResponse(
        throttle_time=NO_THROTTLE, error_code=code, error_message=message
    )
    newest = context.version == VERSIONS[-1]
    return response if newest else AnswerByFeature(response, done)


def read_update(update: asked.FeatureUpdateKey) -> FeatureUpdate:
    """Read what is asked for one feature."""
    way = WAYS.get(update.upgrade_type, UpgradeType.UNKNOWN)
    return FeatureUpdate(update.feature, update.max_version_level, way)
