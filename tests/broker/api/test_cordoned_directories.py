"""Directories that get no new partitions (DSK-01, KIP-1066).

Codes, texts and places are those of Apache Kafka 4.3.1 with the same two directories.
"""

import pytest

from strom.testing.broker import LocalBroker
from tests.conformance.raw import Raw
from tests.patience import until

ALL_CORDONED = "All brokers are currently fenced, or have all their log directories cordoned."


@pytest.fixture
def paths(tmp_path):
    return [str(tmp_path / "one"), str(tmp_path / "two")]


@pytest.fixture
def start(paths, tmp_path):
    """Starts a broker with two directories, of which some are cordoned by its file."""

    def with_cordoned(cordoned):
        settings = {"log.dirs": ",".join(paths), "cordoned.log.dirs": cordoned}
        return LocalBroker(settings, directory=tmp_path)

    return with_cordoned


def cordon(local, raw, paths):
    """Cordon the directories at run time; return once the controller knows."""
    config = {"name": "cordoned.log.dirs", "config_operation": 0, "value": ",".join(paths)}
    resource = {"resource_type": 4, "resource_name": "1", "configs": [config]}
    (done,) = raw.ask("incremental_alter_configs", 1, {"resources": [resource]})["responses"]
    assert done["error_code"] == "none", done
    parts = local.broker.parts
    known = tuple(
        each.id for each in parts.replicas.directories if each.path in paths or "*" in paths
    )
    controller = parts.controller
    until(lambda: controller.image.brokers[1].cordoned_directories, lambda told: told == known)


def create(raw, name, partitions=4, by_hand=False):
    wanted = {"name": name, "num_partitions": partitions, "replication_factor": 1}
    if by_hand:
        assignments = [{"partition_index": 0, "broker_ids": [1]}]
        wanted |= {"num_partitions": -1, "replication_factor": -1, "assignments": assignments}
    asked = {"topics": [wanted], "timeout": 30_000}
    (made,) = raw.ask("create_topics", 7, asked)["topics"]
    return made["error_code"], made["error_message"]


def grow(raw, name, count):
    asked = {"topics": [{"name": name, "count": count}], "timeout": 30_000}
    (done,) = raw.ask("create_partitions", 3, asked)["results"]
    return done["error_code"], done["error_message"]


def move(raw, topic, path):
    asked = {"dirs": [{"path": path, "topics": [{"name": topic, "partitions": [0]}]}]}
    (found,) = raw.ask("alter_replica_log_dirs", 2, asked)["results"]
    return found["partitions"][0]["error_code"]


def places(raw, topic):
    """In which directories the topic's partitions are."""
    results = raw.ask("describe_log_dirs", 5, {"topics": None})["results"]
    names = {each["log_dir"]: [topic["name"] for topic in each["topics"]] for each in results}
    return [path for path, held in names.items() if topic in held]


def are_cordoned(raw):
    results = raw.ask("describe_log_dirs", 5, {"topics": None})["results"]
    return [each["is_cordoned"] for each in results]


def test_a_directory_that_is_cordoned_by_the_file_gets_nothing_new(start, paths):
    with start(paths[0]) as local, Raw(local.bootstrap) as raw:
        assert create(raw, "t") == ("none", None)
        assert places(raw, "t") == [paths[1]]
        assert are_cordoned(raw) == [True, False]


def test_directories_are_cordoned_and_let_go_while_the_broker_runs(start, paths):
    with start("") as local, Raw(local.bootstrap) as raw:
        assert create(raw, "before") == ("none", None)
        assert places(raw, "before") == paths
        cordon(local, raw, paths[1:])
        assert create(raw, "during") == ("none", None)
        assert places(raw, "during") == [paths[0]]
        assert move(raw, "during", paths[1]) == "invalid_replica_assignment"
        assert move(raw, "before", paths[1]) == "invalid_replica_assignment"
        cordon(local, raw, [])
        assert create(raw, "after") == ("none", None)
        assert places(raw, "after") == [paths[1]]  # where fewer are
        assert are_cordoned(raw) == [False, False]


def test_with_all_directories_cordoned_only_what_is_placed_by_hand_is_created(start, paths):
    with start("*") as local, Raw(local.bootstrap) as raw:
        refusal = "invalid_replication_factor"
        alone = f"Unable to replicate the partition 1 time(s): {ALL_CORDONED}"
        assert create(raw, "t") == (refusal, alone)
        assert create(raw, "by-hand", by_hand=True) == ("none", None)
        assert places(raw, "by-hand") == [paths[0]]
        assert grow(raw, "by-hand", 2) == (refusal, ALL_CORDONED)
        cordon(local, raw, paths[:1])
        assert grow(raw, "by-hand", 2) == ("none", None)
        assert places(raw, "by-hand") == paths


def test_what_is_cordoned_at_run_time_is_still_so_after_a_start(start, paths):
    with start("") as local, Raw(local.bootstrap) as raw:
        cordon(local, raw, ["*"])
    with start("") as local, Raw(local.bootstrap) as raw:
        assert create(raw, "t")[0] == "invalid_replication_factor"
        assert are_cordoned(raw) == [True, True]
