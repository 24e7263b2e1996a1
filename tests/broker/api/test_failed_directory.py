"""A log directory that failed: it is told as such, and only its own partitions are gone."""

import threading

import pytest

from strom.testing.broker import LocalBroker
from tests.broker.api.conftest import create
from tests.conformance.raw import Raw
from tests.patience import PATIENCE_SECONDS


@pytest.fixture
def failed(tmp_path):
    """A broker with a topic in two directories, the second of which has failed."""
    paths = [str(tmp_path / "one"), str(tmp_path / "two")]
    settings = {"log.dirs": ",".join(paths)}
    with LocalBroker(settings, directory=tmp_path) as local, Raw(local.bootstrap) as raw:
        create(raw, "flug", partitions=2)
        replicas = local.broker.parts.replicas
        broken = next(each for each in replicas.directories if each.path == paths[1])
        (lost,) = [each.index for each in replicas.partitions_in(broken)]
        done = threading.Event()

        def fail():
            replicas.fail(broken, OSError(5, "Input/output error"))
            done.set()

        local._loop.call_soon_threadsafe(fail)
        assert done.wait(PATIENCE_SECONDS)
        yield raw, paths, lost


def test_it_is_a_storage_error_without_partitions(failed):
    raw, paths, lost = failed
    results = raw.ask("describe_log_dirs", 5, {"topics": None})["results"]
    codes = {each["log_dir"]: each["error_code"] for each in results}
    assert codes == {paths[0]: "none", paths[1]: "kafka_storage_error"}
    told = [
        each["partition_index"]
        for result in results
        for topic in result["topics"]
        for each in topic["partitions"]
    ]
    assert told == [1 - lost]


def test_nothing_is_moved_into_it_or_out_of_it(failed):
    raw, paths, lost = failed

    def move(index, path):
        asked = {"dirs": [{"path": path, "topics": [{"name": "flug", "partitions": [index]}]}]}
        (found,) = raw.ask("alter_replica_log_dirs", 2, asked)["results"]
        return found["partitions"][0]["error_code"]

    assert move(1 - lost, paths[1]) == "kafka_storage_error"
    assert move(lost, paths[0]) == "kafka_storage_error"


def test_records_in_it_cannot_be_deleted_and_the_others_can(failed):
    raw, _, lost = failed
    partitions = [{"partition_index": index, "offset": 0} for index in range(2)]
    asked = {"topics": [{"name": "flug", "partitions": partitions}], "timeout": 5000}
    found = raw.ask("delete_records", 2, asked)["topics"][0]["partitions"]
    codes = {each["partition_index"]: each["error_code"] for each in found}
    assert codes == {lost: "kafka_storage_error", 1 - lost: "none"}
