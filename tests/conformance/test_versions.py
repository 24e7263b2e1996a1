"""Every API at every version that Apache Kafka 4.3 serves, asked of both.

Rows: LOG, TOP, PRO, CON, ADM as far as one node serves them; the range of versions itself is
checked against ApiVersions below.
"""

import re
from pathlib import Path

import pytest

from tests.conformance.batches import NOW_MS, batch
from tests.conformance.raw import Raw
from tests.conformance.transcript import check, is_peer, play

#: What issue §4 asks for, with Apache Kafka 4.3.1's ranges. Produce is told from 0 (KAFKA-18659).
SERVED = {
    "produce": (0, range(3, 14)),
    "fetch": (1, range(4, 19)),
    "list_offsets": (2, range(1, 12)),
    "metadata": (3, range(14)),
    "find_coordinator": (10, range(7)),
    "api_versions": (18, range(5)),
    "create_topics": (19, range(2, 8)),
    "delete_topics": (20, range(1, 7)),
    "delete_records": (21, range(3)),
    "init_producer_id": (22, range(6)),
    "offset_for_leader_epoch": (23, range(2, 5)),
    "describe_configs": (32, range(1, 5)),
    "alter_configs": (33, range(3)),
    "alter_replica_log_dirs": (34, range(1, 3)),
    "describe_log_dirs": (35, range(1, 6)),
    "create_partitions": (37, range(4)),
    "incremental_alter_configs": (44, range(2)),
    "describe_quorum": (55, range(3)),
    "update_features": (57, range(3)),
    "describe_cluster": (60, range(3)),
    "describe_producers": (61, range(1)),
    "unregister_broker": (64, range(1)),
    "list_config_resources": (74, range(2)),
    "describe_topic_partitions": (75, range(1)),
}
#: Apache Kafka serves these only with a plug-in that takes client metrics in; Strom does itself.
TELEMETRY = {
    "get_telemetry_subscriptions": (71, range(1)),
    "push_telemetry": (72, range(1)),
}
TOPIC, BROKER = 2, 4
README = Path(__file__).parents[2] / "README.md"


class Asked:
    """The request of each API, in the newest names of its fields."""

    def __init__(self, topic, topic_id, version):
        self.topic, self.topic_id, self.version = topic, topic_id, version

    def produce(self):
        data = {"index": 0, "records": batch([b"one", b"two"])}
        named = {"name": self.topic, "topic_id": self.topic_id, "partition_data": [data]}
        return {"acks": -1, "timeout": 5000, "topic_data": [named]}

    def fetch(self):
        wanted = {"partition": 0, "fetch_offset": 1, "partition_max_bytes": 1 << 20}
        named = {"topic": self.topic, "topic_id": self.topic_id, "partitions": [wanted]}
        limits = {"max_wait": 500, "min_bytes": 1, "max_bytes": 1 << 20}
        return {"replica_id": -1, **limits, "topics": [named]}

    def list_offsets(self):
        times = [-1, -2] + [-3] * (self.version >= 7) + [-4] * (self.version >= 8)
        times += [-5] * (self.version >= 9) + [NOW_MS]
        return [
            {
                "replica_id": -1,
                "topics": [
                    {
                        "name": self.topic,
                        "partitions": [{"partition_index": 0, "timestamp": time}],
                    }
                ],
            }
            for time in times
        ]

    def metadata(self):
        return {"topics": [{"name": self.topic}], "allow_auto_topic_creation": False}

    def find_coordinator(self):
        return {"key": "g", "key_type": 0, "coordinator_keys": ["g"]}

    def api_versions(self):
        return {"client_software_name": "raw", "client_software_version": "1.0"}

    def create_topics(self):
        new = {"name": self.topic + "-new", "num_partitions": 2, "replication_factor": 1}
        new["configs"] = [{"name": "retention.ms", "value": "1000"}]
        return {"topics": [new], "timeout": 5000, "validate_only": self.version % 2 == 1}

    def delete_topics(self):
        names = [self.topic + "-new", self.topic + "-none"]
        return {"topics": [{"name": n} for n in names], "topic_names": names, "timeout": 5000}

    def delete_records(self):
        cut = {"partition_index": 1, "offset": 0}
        return {"topics": [{"name": self.topic, "partitions": [cut]}], "timeout": 5000}

    def init_producer_id(self):
        return {"transaction_timeout": 60000, "producer_id": -1, "producer_epoch": -1}

    def offset_for_leader_epoch(self):
        asked = {"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}
        return {"replica_id": -2, "topics": [{"topic": self.topic, "partitions": [asked]}]}

    def describe_configs(self):
        keys = ["retention.ms", "max.message.bytes", "cleanup.policy", "compression.type"]
        asked = {"resource_type": TOPIC, "resource_name": self.topic, "configuration_keys": keys}
        return {"resources": [asked], "include_synonyms": True, "include_documentation": False}

    def alter_configs(self):
        changed = [{"name": "retention.ms", "value": "86400000"}]
        asked = {"resource_type": TOPIC, "resource_name": self.topic, "configs": changed}
        return {"resources": [asked], "validate_only": True}

    def incremental_alter_configs(self):
        changed = [{"name": "retention.ms", "config_operation": 0, "value": "86400000"}]
        asked = {"resource_type": TOPIC, "resource_name": self.topic, "configs": changed}
        return {"resources": [asked], "validate_only": True}

    def alter_replica_log_dirs(self):
        moved = [{"name": self.topic, "partitions": [0]}]
        return {"dirs": [{"path": "/not/a/directory/of/this/broker", "topics": moved}]}

    def describe_log_dirs(self):
        return {"topics": [{"topic": self.topic, "partitions": [0, 1]}]}

    def create_partitions(self):
        return {
            "topics": [{"name": self.topic, "count": 3}, {"name": self.topic + "-no", "count": 3}],
            "timeout": 5000,
            "validate_only": True,
        }

    def describe_quorum(self):
        return {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{}]}]}

    def update_features(self):
        change = {"feature": "metadata.version", "max_version_level": 1, "upgrade_type": 1}
        return {"timeout": 5000, "feature_updates": [change], "validate_only": True}

    def describe_cluster(self):
        return {"include_cluster_authorized_operations": True}

    def describe_producers(self):
        return {"topics": [{"name": self.topic, "partition_indexes": [0, 7]}]}

    def unregister_broker(self):
        return {"broker_id": 4711}

    def list_config_resources(self):
        return {"resource_types": [BROKER]}

    def describe_topic_partitions(self):
        return {"topics": [{"name": self.topic}], "response_partition_limit": 1}


def only_ranges_of_ours(answer):
    ours = {key for key, _ in SERVED.values()}
    return sorted(
        [each["api_key"], each["min_version"], each["max_version"]]
        for each in answer["api_keys"]
        if each["api_key"] in ours
    )


def without_offsets(answer):
    """A quorum's answer without how far its log has come, which no two runs share."""
    for topic in answer["topics"]:
        for partition in topic["partitions"]:
            partition["high_watermark"] = partition["leader_epoch"] = "<far>"
            for replica in partition["current_voters"] + partition["observers"]:
                replica["log_end_offset"] = "<far>"
    for node in answer.get("nodes", []):
        node["listeners"] = "<listeners>"
    return answer


def with_text_of_code(answer):
    """A refusal to change features, by its code: the text names the versions of the software."""
    results = [each["error_code"] for each in answer.get("results", [])]
    return {"error_code": answer["error_code"], "results": results}


def only_its_fields(answer):
    """Whether there is a coordinator depends on what the broker did before."""
    answers = answer.get("coordinators", [answer])
    return [sorted(each) for each in answers]


ONLY = {
    "find_coordinator": only_its_fields,
    "api_versions": only_ranges_of_ours,
    "describe_quorum": without_offsets,
    "update_features": with_text_of_code,
}


def one_request(talk, *, api, version):
    """A topic with two batches, then the request."""
    topic_id = talk.create(partitions=2)
    asked = Asked(talk.name, topic_id, version)
    for _ in range(2):
        seeded = talk.raw.ask("produce", 9, Asked(talk.name, topic_id, 9).produce())
        assert seeded["responses"][0]["partition_responses"][0]["error_code"] == "none"
    if api == "delete_topics":
        talk.create("-new")
    requests = getattr(asked, api)()
    for each in requests if isinstance(requests, list) else [requests]:
        talk.ask(api, version, each, only=ONLY.get(api))


EVERY = [(api, version) for api, (_, versions) in SERVED.items() for version in versions]


@pytest.mark.parametrize(("api", "version"), EVERY)
def test_is_answered_as_kafka_does(api, version, either, name, request):
    lines = play(one_request, either.bootstrap, name, api=api, version=version)
    check("versions", f"{api} v{version}", lines, peer=is_peer(request))


def only_features(answer):
    """Within which versions the features are, and at which level a new cluster is."""
    fields = ("supported_features", "finalized_features")
    return {field: sorted(list(each.values()) for each in answer[field]) for field in fields}


def features(talk, *, version):
    asked = {"client_software_name": "strom-test", "client_software_version": "1"}
    talk.ask("api_versions", version, asked, only=only_features)


@pytest.mark.parametrize("version", [3, 4])
def test_features_are_told_as_kafka_tells_them(version, either, name, request):
    lines = play(features, either.bootstrap, name, version=version)
    check("versions", f"features v{version}", lines, peer=is_peer(request))


def test_api_versions_tells_what_is_served(either):
    """LOG-03."""
    with Raw(either.bootstrap) as raw:
        told = raw.ask("api_versions", 0)["api_keys"]
    ranges = {each["api_key"]: (each["min_version"], each["max_version"]) for each in told}
    for api, (key, versions) in SERVED.items():
        first = 0 if api == "produce" else versions.start
        assert ranges[key] == (first, versions.stop - 1), api


SET, DELETE = 0, 1


def test_telemetry_is_told_of_while_somebody_has_subscribed(strom_only):
    keys = {key for key, _ in TELEMETRY.values()}
    with Raw(strom_only.bootstrap) as raw:
        assert keys.isdisjoint(told(raw))
        subscribe(raw, operation=SET, value="org.apache.kafka.")
        assert keys <= told(raw)
        subscribe(raw, operation=DELETE, value=None)
        assert keys.isdisjoint(told(raw))


def told(raw):
    return {each["api_key"] for each in raw.ask("api_versions", 0)["api_keys"]}


def subscribe(raw, operation, value):
    setting = {"name": "metrics", "config_operation": operation, "value": value}
    resource = {"resource_type": 16, "resource_name": "told", "configs": [setting]}
    answer = raw.ask("incremental_alter_configs", 1, {"resources": [resource]})
    assert answer["responses"][0]["error_code"] == "none"


def test_the_readme_tells_what_is_served(strom_only):
    rows = re.findall(r"^\| (\w+) \| (\d+) \| (\d+)-(\d+) \|$", README.read_text(), re.MULTILINE)
    rows_told = {int(key): (int(first), int(last)) for _, key, first, last in rows}
    with Raw(strom_only.bootstrap) as raw:
        keys = raw.ask("api_versions", 0)["api_keys"]
    served = {each["api_key"]: (each["min_version"], each["max_version"]) for each in keys}
    served[0] = (3, served[0][1])
    # Told of only while somebody has subscribed to clients' metrics.
    served |= {key: (versions.start, versions.stop - 1) for key, versions in TELEMETRY.values()}
    assert rows_told == served
