"""Replicas moved between directories of a running broker: under load, and through kills.

Rows: DSK-01, DSK-09. Answers and codes are those that Apache Kafka 4.3.1 gave.
"""

import random
import shutil
import threading
from pathlib import Path

import pytest

from strom.broker.api import alter_replica_log_dirs
from tests import nodes
from tests.broker.api.conftest import create, produce
from tests.conformance.batches import batch, headers
from tests.conformance.raw import Raw
from tests.patience import until

#: Bytes a second: what there is to move takes a minute.
SLOW = 50_000


def move(raw, topic, index, path, version=2):
    asked = {"dirs": [{"path": path, "topics": [{"name": topic, "partitions": [index]}]}]}
    (found,) = raw.ask("alter_replica_log_dirs", version, asked)["results"]
    return found["partitions"][0]["error_code"]


def places(raw, topic):
    """In which directories the topic's first partition is, and in which it will be."""
    asked = {"topics": [{"topic": topic, "partitions": [0]}]}
    results = raw.ask("describe_log_dirs", 5, asked)["results"]
    found = [
        (result["log_dir"], each["is_future_key"])
        for result in results
        for each_topic in result["topics"]
        for each in each_topic["partitions"]
    ]
    return [path for path, future in found if not future], [path for path, f in found if f]


def wait_moved(raw, topic, path):
    until(lambda: places(raw, topic), lambda found: found == ([path], []))


def wait_begun(raw, topic):
    until(lambda: places(raw, topic), lambda found: found[1])


def wait_removed(directory):
    """Wait until what was left behind is gone from the disk."""
    until(lambda: not directory.exists())


def offsets(raw, topic):
    """The offsets of all records, in the order in which they are read."""
    found, offset = [], 0
    while True:
        partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
        asked = {"max_bytes": 1 << 20, "topics": [{"topic": topic, "partitions": [partition]}]}
        (data,) = raw.ask("fetch", 11, asked)["responses"][0]["partitions"]
        assert data["error_code"] == "none", data
        if not data["records"]:
            return found
        for each in headers(data["records"]):
            found.extend(range(each.base_offset, each.last_offset + 1))
        offset = found[-1] + 1


def elsewhere(broker, raw, topic):
    (here,), _ = places(raw, topic)
    return here, next(each for each in broker.log_dirs if each != here)


@pytest.mark.parametrize("version", alter_replica_log_dirs.VERSIONS)
def test_a_partition_is_moved_with_all_that_it_has(raw, broker, name, version):
    create(raw, name, partitions=1)
    produce(raw, name, *[batch([b"x" * 1000] * 10)] * 20)
    here, there = elsewhere(broker, raw, name)
    assert move(raw, name, 0, there, version) == "none"
    wait_moved(raw, name, there)
    assert offsets(raw, name) == list(range(200))
    assert produce(raw, name, batch([b"more"])) == 200
    wait_removed(Path(here) / f"{name}-0")
    assert (Path(there) / f"{name}-0").is_dir()


def test_a_topic_moves_only_if_its_copy_can_have_its_name(raw, broker, name):
    """A copy under half a name would be nobody's after a crash, and it may be all there is."""
    fits, too_long = name.ljust(213, "x"), name.ljust(214, "x")
    for topic in (fits, too_long):
        create(raw, topic, partitions=1)
    _, there = elsewhere(broker, raw, fits)
    assert move(raw, fits, 0, there) == "none"
    wait_moved(raw, fits, there)
    here, there = elsewhere(broker, raw, too_long)
    for path in (here, there, "/nowhere"):
        assert move(raw, too_long, 0, path) == "invalid_topic_exception"
    assert places(raw, too_long) == ([here], [])


def test_a_partition_named_twice_is_answered_once_and_goes_where_it_was_sent_last(
    raw, broker, name
):
    create(raw, name, partitions=1)
    here, there = elsewhere(broker, raw, name)
    twice = [
        {"path": path, "topics": [{"name": name, "partitions": [0, 0]}]} for path in (here, there)
    ]
    (found,) = raw.ask("alter_replica_log_dirs", 2, {"dirs": twice})["results"]
    assert found["partitions"] == [{"partition_index": 0, "error_code": "none"}]
    wait_moved(raw, name, there)


def test_a_partition_is_written_and_read_while_it_moves_back_and_forth(raw, broker, name):
    create(raw, name, partitions=1, segment_bytes=1 << 20)
    written, stop = [], threading.Event()

    def write():
        with Raw(broker.bootstrap) as writer:
            while not stop.is_set():
                written.append(produce(writer, name, batch([b"x" * 500] * 20)))

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(4):
            _, there = elsewhere(broker, raw, name)
            assert move(raw, name, 0, there) == "none"
            wait_moved(raw, name, there)
    finally:
        stop.set()
        thread.join()
    assert written == [20 * n for n in range(len(written))]
    assert offsets(raw, name) == list(range(20 * len(written)))


def test_deleted_records_stay_deleted(raw, broker, name):
    create(raw, name, partitions=1)
    produce(raw, name, *[batch([b"a", b"b", b"c"])] * 4)
    cut = {"name": name, "partitions": [{"partition_index": 0, "offset": 4}]}
    raw.ask("delete_records", 2, {"topics": [cut], "timeout": 5000})
    _, there = elsewhere(broker, raw, name)
    move(raw, name, 0, there)
    wait_moved(raw, name, there)
    place = {"name": name, "partitions": [{"partition_index": 0, "timestamp": -2}]}
    found = raw.ask("list_offsets", 7, {"topics": [place]})["topics"][0]["partitions"][0]
    assert found["offset"] == 4


def test_the_directory_it_is_in_is_no_move(raw, broker, topic):
    here, _ = elsewhere(broker, raw, topic)
    assert move(raw, topic, 0, here) == "none"
    assert places(raw, topic) == ([here], [])


@pytest.mark.parametrize(
    ("path", "place", "code"),
    [
        ("/nowhere", ("~", 0), "log_dir_not_found"),
        ("relative", ("~", 0), "log_dir_not_found"),
        (None, ("~", 9), "unknown_topic_or_partition"),
        (None, ("no-such", 0), "unknown_topic_or_partition"),
        (None, ("bad name", 0), "unknown_topic_or_partition"),
    ],
)
def test_moves_that_cannot_be(raw, broker, topic, path, place, code):
    wanted = topic if place[0] == "~" else place[0]
    assert move(raw, wanted, place[1], path or broker.log_dirs[0]) == code


@pytest.fixture
def process():
    """A broker of its own with two directories, which may be killed."""
    root = nodes.new_directory("moves")
    paths = [str(root / "one"), str(root / "two")]
    made = nodes.StromProcess(root, **{"log.dirs": ",".join(paths)})
    made.log_dirs = paths
    yield made.start()
    made.remove()
    shutil.rmtree(root, ignore_errors=True)


def pace(raw, bytes_per_second):
    """Limit how fast replicas are moved, so that a kill finds a move under way."""
    name = "replica.alter.log.dirs.io.max.bytes.per.second"
    config = {"name": name, "config_operation": 0, "value": str(bytes_per_second)}
    resource = {"resource_type": 4, "resource_name": "1", "configs": [config]}
    (done,) = raw.ask("incremental_alter_configs", 1, {"resources": [resource]})["responses"]
    assert done["error_code"] == "none", done


def is_half_done(process, topic):
    """Whether a move was cut off: there is a copy, or the partition is there twice."""
    return sum(len(list(Path(path).glob(f"{topic}-0*"))) for path in process.log_dirs) > 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_kills_at_random_points_of_a_move_lose_nothing(process, seed):
    rng = random.Random(seed)
    topic, count, half_done = "killed", 0, 0
    with Raw(process.bootstrap) as raw:
        create(raw, topic, partitions=1, segment_bytes=1 << 20)
        for _ in range(20):
            produce(raw, topic, batch([b"x" * 5000] * 20))
            count += 20
    # The first one comes in time however slow the machine is.
    for speed in (SLOW, *rng.choices([5_000_000, 20_000_000, 2**40], k=3)):
        with Raw(process.bootstrap) as raw:
            pace(raw, speed)
            (here,), _ = places(raw, topic)
            move(raw, topic, 0, next(each for each in process.log_dirs if each != here))
            if speed == SLOW:
                wait_begun(raw, topic)
            for _ in range(rng.randrange(12)):
                assert produce(raw, topic, batch([b"y" * 5000] * 20)) == count
                count += 20
        process.kill()
        half_done += is_half_done(process, topic)
        process.start()
        with Raw(process.bootstrap) as raw:
            assert offsets(raw, topic) == list(range(count))
    assert half_done, "no kill came in time"
    with Raw(process.bootstrap) as raw:
        pace(raw, 2**40)
        there = process.log_dirs[seed % 2]
        move(raw, topic, 0, there)
        wait_moved(raw, topic, there)
        assert offsets(raw, topic) == list(range(count))
    process.stop()
    found = [each for path in process.log_dirs for each in Path(path).glob(f"{topic}-0")]
    assert [str(each.parent) for each in found] == [there]
