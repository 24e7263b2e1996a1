"""Options that say how brokers are asked are in what the brokers are asked."""

import pytest

from strom.records.columns import Columns
from strom.spark import planning
from strom.spark.arrow import to_arrow
from strom.spark.fetching import RangeReader
from strom.spark.options import ReadOptions
from strom.spark.planning import Planner
from strom.spark.task import Task
from tests.spark.scripted import FETCH, METADATA, TOPIC, TOPIC_ID, Cluster, serving

COUNT = 3
PLACE = (TOPIC, 0)


@pytest.fixture
def cluster():
    with serving(Cluster(COUNT)) as found:
        yield found


def options_for(cluster, streaming=False, **options):
    servers = ",".join(f"{host}:{port}" for host, port in cluster.addresses)
    named = {name.replace("__", "."): str(value) for name, value in options.items()}
    given = {"kafka.bootstrap.servers": servers, "subscribe": TOPIC, **named}
    return ReadOptions.parse(given, streaming=streaming)


def read(cluster, **options):
    """Read the partition; return its offsets."""
    connection = options_for(cluster, **options).connection
    task = Task(PLACE, TOPIC_ID, 0, COUNT, cluster.addresses[0])
    found = []
    for taken in RangeReader(task, connection, pytest.fail).read(Columns(False)):
        found += [each["offset"] for each in to_arrow(taken, PLACE).to_pylist()]
    return found


def test_every_fetch_says_how_much_and_how_long(cluster):
    given = {
        "kafka__fetch__min__bytes": 11,
        "kafka__fetch__max__bytes": 22_000,
        "kafka__max__partition__fetch__bytes": 3300,
        "kafka__fetch__max__wait__ms": 44,
        "kafka__isolation__level": "read_committed",
    }
    assert read(cluster, **given) == list(range(COUNT))
    assert [asked.offset for asked in cluster.asked] == list(range(COUNT))
    for _, _, request in cluster.asked:
        ((partition,),) = (topic.partitions for topic in request.topics)
        assert (request.min_bytes, request.max_bytes) == (11, 22_000)
        assert partition.partition_max_bytes == 3300
        assert request.max_wait.total_seconds() == 0.044
        assert request.isolation_level == 1


@pytest.mark.parametrize("name", ["strom-spark", "nightly job"])
def test_every_request_has_the_name_of_the_client(cluster, name):
    given = {} if name == "strom-spark" else {"kafka__client__id": name}
    Planner(options_for(cluster, **given)).topics()
    read(cluster, **given)
    assert {(METADATA, name), (FETCH, name)} <= cluster.clients
    assert {client for _, client in cluster.clients} == {name}


@pytest.mark.parametrize(("attempts", "found"), [(1, 4), (2, 5), (3, 10), (4, 10)])
def test_an_end_before_what_is_known_is_looked_for_again(cluster, monkeypatch, attempts, found):
    """fetchOffset.numRetries, fetchOffset.retryIntervalMs."""
    pauses = []
    monkeypatch.setattr(planning, "pause", pauses.append)
    cluster.offsets = [4, 5, 10]
    given = {"fetchOffset__numRetries": attempts, "fetchOffset__retryIntervalMs": 7}
    planner = Planner(options_for(cluster, streaming=True, **given))
    assert planner.latest(planner.topics(), {PLACE: 9}) == {PLACE: found}
    assert pauses == [7] * (min(attempts, 3) - 1)
