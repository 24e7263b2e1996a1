"""The cluster, its quorum, its features and its resources: answers held against Apache Kafka's."""

import pytest

from strom.broker.api import describe_cluster, describe_quorum, update_features

METADATA = "__cluster_metadata"


@pytest.mark.parametrize("version", describe_cluster.VERSIONS)
def test_the_cluster_is_described_as_the_client_reaches_it(raw, broker, version):
    found = raw.ask("describe_cluster", version, {"endpoint_type": 1})
    host, port = broker.bootstrap.split(":")
    assert found["controller_id"] == 1
    (only,) = found["brokers"]
    assert (only["broker_id"], only["host"], only["port"]) == (1, host, int(port))
    assert found["cluster_authorized_operations"] == -(2**31)


def test_the_operations_allowed_are_told_to_who_asks(raw):
    asked = {"endpoint_type": 1, "include_cluster_authorized_operations": True}
    assert raw.ask("describe_cluster", 2, asked)["cluster_authorized_operations"] == 8096


@pytest.mark.parametrize(
    ("endpoint_type", "code", "message"),
    [
        (
            2,
            "mismatched_endpoint_type",
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type "
            "CONTROLLER",
        ),
        (7, "unsupported_endpoint_type", "Unsupported endpoint type 7"),
    ],
)
def test_other_endpoints_are_not_here(raw, endpoint_type, code, message):
    found = raw.ask("describe_cluster", 2, {"endpoint_type": endpoint_type})
    assert (found["error_code"], found["error_message"]) == (code, message)
    assert found["cluster_id"] == ""


def topics(*places):
    return [{"topic_name": n, "partitions": [{"partition_index": i}]} for n, i in places]


@pytest.mark.parametrize("version", describe_quorum.VERSIONS)
def test_the_quorum_is_one_voter_that_leads_and_has_all(raw, version):
    found = raw.ask("describe_quorum", version, {"topics": topics((METADATA, 0))})
    (partition,) = found["topics"][0]["partitions"]
    (voter,) = partition["current_voters"]
    assert partition["leader_id"] == voter["replica_id"] == 1
    assert partition["high_watermark"] == voter["log_end_offset"] > 0
    assert partition["observers"] == []


@pytest.mark.parametrize(
    "places", [[("foo", 0)], [(METADATA, 1)], [(METADATA, 0), ("x", 0)]], ids=str
)
def test_nothing_else_has_a_quorum(raw, places):
    found = raw.ask("describe_quorum", 2, {"topics": topics(*places)})
    partitions = [each["partitions"][0] for each in found["topics"]]
    assert {each["error_code"] for each in partitions} == {"unknown_topic_or_partition"}
    assert {each["leader_id"] for each in partitions} == {0}
    assert found["nodes"] == []


FAILED = "The update failed for all features since the following feature had an error: "
REFUSED = [
    ("nope", 1, 1, "Local controller 1 does not support this feature."),
    ("metadata.version", 999, 1, "Local controller 1 only supports versions 7-30"),
    ("transaction.version", 1, 9, "The controller does not support the given upgrade type."),
    ("transaction.version", -1, 2, "A feature version cannot be less than 0."),
]


def update(raw, version, *updates, **given):
    asked = [
        {"feature": name, "max_version_level": level, "upgrade_type": way, "allow_downgrade": False}
        for name, level, way in updates
    ]
    values = {"timeout": 10_000, "feature_updates": asked, "validate_only": True} | given
    return raw.ask("update_features", version, values)


@pytest.mark.parametrize(("name", "level", "way", "reason"), REFUSED)
def test_levels_that_cannot_be_are_refused_for_all(raw, name, level, way, reason):
    found = update(raw, 2, ("transaction.version", 2, 1), (name, level, way))
    assert found["error_code"] == "invalid_update_version"
    expected = f"{FAILED}Invalid update version {level} for feature {name}. {reason}"
    assert found["error_message"] == expected


@pytest.mark.parametrize("version", update_features.VERSIONS)
def test_every_version_is_answered_in_its_own_way(raw, version):
    done = update(raw, version, ("transaction.version", 2, 1))
    refused = update(raw, version, ("nope", 1, 1))
    assert (done["error_code"], refused["error_code"]) == ("none", "invalid_update_version")
    if version < 2:
        (result,) = done["results"]
        assert result == {
            "feature": "transaction.version",
            "error_code": "none",
            "error_message": "NONE",
        }
        assert refused["results"] == []


@pytest.mark.parametrize("timeout", [0, -1])
def test_levels_move_however_little_time_there_is(raw, timeout):
    done = update(raw, 2, ("transaction.version", 2, 1), timeout=timeout)
    assert (done["error_code"], done["error_message"]) == ("none", None)
    refused = update(raw, 2, ("nope", 1, 1), timeout=timeout)
    assert refused["error_code"] == "invalid_update_version"


def test_a_broker_that_serves_is_not_forgotten(raw):
    found = raw.ask("unregister_broker", 0, {"broker_id": 1})
    assert found["error_code"] == "invalid_request"
    assert raw.ask("describe_cluster", 2, {"endpoint_type": 1})["brokers"]


def test_a_broker_that_was_never_there_cannot_be_forgotten(raw):
    found = raw.ask("unregister_broker", 0, {"broker_id": 77})
    assert found["error_code"] == "broker_id_not_registered"
    assert found["error_message"] == "Broker ID 77 is not currently registered"


def resources(raw, *types, version=1):
    found = raw.ask("list_config_resources", version, {"resource_types": types})
    listed = found["config_resources"]
    return found["error_code"], {(e.get("resource_type"), e["resource_name"]) for e in listed}


def test_resources_are_listed_by_type(raw, topic):
    assert resources(raw, 4, 8) == ("none", {(4, "1"), (8, "1")})
    assert (2, topic) in resources(raw, 2)[1]
    assert {(4, "1"), (8, "1"), (2, topic)} <= resources(raw)[1]


def test_an_unknown_type_of_resource_is_refused(raw):
    assert resources(raw, 99, 4) == ("unsupported_version", set())


def test_the_oldest_version_lists_subscriptions_only(raw, topic):
    name = "subscription"
    change = {"name": "metrics", "config_operation": 0, "value": "*"}
    resource = {"resource_type": 16, "resource_name": name, "configs": [change]}
    raw.ask("incremental_alter_configs", 1, {"resources": [resource]})
    listed = resources(raw, version=0)[1]
    assert (None, name) in listed
    assert (None, topic) not in listed
