"""Levels of features: Kafka's, moved in Kafka's words."""

import pytest

from strom.metadata.feature_decisions import FeatureUpdate, UpgradeType
from strom.wire.errors import ErrorCode, KafkaError
from tests.metadata.cluster import Cluster

UNKNOWN, UP, SAFE, UNSAFE = UpgradeType


def update(cluster, *asked, validate_only=False):
    updates = [FeatureUpdate(*each) for each in asked]
    return cluster.do(cluster.controller.update_features(updates, validate_only=validate_only))


def test_a_new_cluster_has_what_kafka_4_3_finalises():
    assert dict(Cluster().image.features) == {
        "metadata.version": 30,
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "share.version": 1,
        "streams.version": 1,
        "transaction.version": 2,
    }


def test_a_feature_goes_down_and_up_again(cluster):
    update(cluster, ("transaction.version", 1, SAFE), ("group.version", 0, UNSAFE))
    assert cluster.image.features["transaction.version"] == 1
    assert "group.version" not in cluster.image.features
    update(cluster, ("group.version", 1, UP), validate_only=True)
    assert "group.version" not in cluster.image.features
    update(cluster, ("group.version", 1, UP))
    assert cluster.image.features["group.version"] == 1


NOT_SET_TO_DOWNGRADE = (
    "Can't downgrade the version of this feature without setting the upgrade type to either safe "
    "or unsafe downgrade."
)


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (("metadata.version", 31, UP), "Invalid update version 31 for feature metadata.version. "
         "Local controller 1 only supports versions 7-30"),
        (("metadata.version", 29, UP), "Invalid update version 29 for feature metadata.version. "
         f"{NOT_SET_TO_DOWNGRADE}"),
        (("metadata.version", 29, SAFE), "Unsupported metadata.version downgrade from 30 to 29. "
         "Refusing to perform the requested downgrade because it might delete metadata "
         "information."),
        (("metadata.version", 29, UNSAFE), "Unsupported metadata.version downgrade from 30 to 29. "
         "Unsafe metadata downgrade is not supported in this version."),
        (("bogus", 1, UP), "Invalid update version 1 for feature bogus. "
         "Local controller 1 does not support this feature."),
        (("bogus", 0, SAFE), "Invalid update version 0 for feature bogus. "
         "Feature bogus not found."),
        (("group.version", 0, UP), "Invalid update version 0 for feature group.version. "
         f"{NOT_SET_TO_DOWNGRADE}"),
        (("group.version", -1, UP), "Invalid update version -1 for feature group.version. "
         "A feature version cannot be less than 0."),
        (("group.version", 1, UNKNOWN), "Invalid update version 1 for feature group.version. "
         "The controller does not support the given upgrade type."),
        (("kraft.version", 0, SAFE), "Invalid update version 0 for feature kraft.version. "
         "Can't downgrade the version of this feature."),
    ],
)  # fmt: skip
def test_a_level_that_cannot_be_is_refused_in_kafkas_words(asked, reason):
    cluster = Cluster()
    with pytest.raises(KafkaError) as refused:
        update(cluster, ("transaction.version", 1, SAFE), asked)
    assert refused.value.code is ErrorCode.INVALID_UPDATE_VERSION
    assert refused.value.message == (
        f"The update failed for all features since the following feature had an error: {reason}"
    )
    assert cluster.image.features["transaction.version"] == 2


def test_a_downgrade_goes_down(cluster):
    update(cluster, ("transaction.version", 0, SAFE))
    with pytest.raises(KafkaError, match="Can't downgrade to a newer version"):
        update(cluster, ("transaction.version", 1, SAFE))
