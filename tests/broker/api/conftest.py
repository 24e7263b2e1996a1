"""A broker in this process for the tests of one module, and a client that says what it is told."""

import asyncio
import itertools

import pytest

from strom.testing.broker import LocalBroker

NAMES = itertools.count()


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    """One broker with two log directories, shared by the tests of a module."""
    root = tmp_path_factory.mktemp("broker")
    paths = [root / "one", root / "two"]
    settings = {"log.dirs": ",".join(map(str, paths)), "strom.http.port": "0"}
    with LocalBroker(settings, directory=root) as local:
        local.log_dirs = [str(path) for path in paths]
        yield local


@pytest.fixture
def turn(broker):
    """Tells which turn of the broker's loop it is."""
    turns = [0]

    async def count():
        while turns[0] >= 0:
            turns[0] += 1
            await asyncio.sleep(0)

    counting = asyncio.run_coroutine_threadsafe(count(), broker._loop)
    # Until the counting has begun every turn would look like the first.
    asyncio.run_coroutine_threadsafe(asyncio.sleep(0), broker._loop).result(30)
    yield lambda: turns[0]
    turns[0] = -10
    counting.result(30)


@pytest.fixture
def name():
    """A topic name that no other test uses."""
    return f"topic-{next(NAMES)}"


@pytest.fixture
def topic(raw, name):
    """A topic of two partitions."""
    return create(raw, name)["name"]


def create(raw, name, partitions=2, **config):
    settings = [{"name": key.replace("_", "."), "value": str(v)} for key, v in config.items()]
    wanted = {"name": name, "num_partitions": partitions, "replication_factor": 1}
    asked = {"topics": [wanted | {"configs": settings}], "timeout": 10_000}
    (made,) = raw.ask("create_topics", 7, asked)["topics"]
    assert made["error_code"] == "none", made
    return made


def produce(raw, topic, *batches, index=0):
    """Append batches; the offset of the first."""
    offsets = []
    for records in batches:
        data = {"index": index, "records": bytes(records)}
        asked = {
            "acks": -1,
            "timeout": 5000,
            "topic_data": [{"name": topic, "partition_data": [data]}],
        }
        answer = raw.ask("produce", 9, asked)["responses"][0]["partition_responses"][0]
        assert answer["error_code"] == "none", answer
        offsets.append(answer["base_offset"])
    return offsets[0]


def offsets(raw, topic, partitions, timestamp=-1):
    """Return the offset of every partition at the time, its end by default, or why not."""
    places = [{"partition_index": index, "timestamp": timestamp} for index in range(partitions)]
    asked = {"replica_id": -1, "topics": [{"name": topic, "partitions": places}]}
    (answer,) = raw.ask("list_offsets", 7, asked)["topics"]
    return {
        each["partition_index"]: each["offset"]
        if each["error_code"] == "none"
        else each["error_code"]
        for each in answer["partitions"]
    }


def log_directories(raw):
    """Return of every log directory its error, and how many topics are in it."""
    found = raw.ask("describe_log_dirs", 5, {"topics": None})["results"]
    return {each["log_dir"]: (each["error_code"], len(each["topics"])) for each in found}
