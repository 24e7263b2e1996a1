"""What goes wrong around a pipeline: it says what to do, and nothing is lost or doubled."""

import json
import shutil
import subprocess

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from strom.pipelines import Pipeline
from strom.pipelines.directory import Directory
from strom.pipelines.failure import ChangedError, PipelineError, StepError
from strom.pipelines.status import DONE, FAILED, STOPPED
from strom.spark.session import QUICK_CHECKPOINTS
from tests import nodes
from tests.spark.topics import Topics

pytestmark = [pytest.mark.slow, pytest.mark.java]

NOWHERE = {"kafka.bootstrap.servers": "127.0.0.1:1", "kafkaConsumer.pollTimeoutMs": "300"}


def copies(source, target, **options):
    """A pipeline from a topic to a topic, each row once."""
    pipeline = Pipeline("copies", every="0 seconds")
    pipeline.topic("numbers", source, json="n int", **options)
    pipeline.to_topic("copied", of="numbers", key="n", topic=target)
    return pipeline


def send(topics, topic, numbers):
    topics.fill(topic, [b'{"n": %d}' % n for n in numbers])


def copied(topics, topic):
    return sorted(json.loads(row.value)["n"] for row in topics.read(topic))


class Steps:
    """Does one thing after the other, each once so many rows have been read; then stops the run."""

    def __init__(self, directory, *steps):
        self._directory = directory
        self._steps = list(steps)

    def __call__(self, status):
        rows = status.sinks[0].rows if status.sinks else 0
        if self._steps and rows >= self._steps[0][0]:
            self._steps.pop(0)[1]()
            if not self._steps:
                self._directory.ask_to_stop()


@pytest.fixture
def small_disk(tmp_path):
    """A disk of a few megabytes, on which the copies' checkpoints are."""
    disk, home = tmp_path / "small", tmp_path / "home" / "copies"
    disk.mkdir()
    home.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "strom-test", str(disk)]
    if shutil.which("mount") is None or subprocess.run(mount, check=False).returncode:
        pytest.skip("a small disk cannot be mounted here")
    (home / "checkpoints").symlink_to(disk)
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def fill_up(disk):
    """Leave not a byte."""
    ballast = (disk / "ballast").open("wb", buffering=0)
    with ballast, pytest.raises(OSError, match="No space left"):
        while True:
            ballast.write(bytes(4096))


@pytest.fixture(params=["quick", "default"])
def checkpoints(spark, request):
    """Both ways to write checkpoints: that of the tests' session, and that of the command."""
    ((setting, quick),) = QUICK_CHECKPOINTS.items()
    if request.param == "default":
        spark.conf.unset(setting)
    yield
    spark.conf.set(setting, quick)


@pytest.mark.usefixtures("checkpoints")
def test_a_full_disk_ends_the_run_and_with_room_again_it_goes_on(
    strom_topics, run, small_disk, tmp_path
):
    source, target = strom_topics.make(), strom_topics.make()
    pipeline = copies(source, target)
    directory = Directory(tmp_path / "home", "copies")
    send(strom_topics, source, range(10))

    def fill_and_send():
        fill_up(small_disk)
        send(strom_topics, source, range(10, 20))

    steps = Steps(directory, (10, fill_and_send), (1000, lambda: None))
    with pytest.raises(
        StepError, match=r"^copied: .*No space left on device.*\(make room where the"
    ):
        run(pipeline, once=False, show=steps)
    assert directory.status().state == FAILED
    assert "make room" in directory.status().error
    (small_disk / "ballast").unlink()
    send(strom_topics, source, range(20, 30))
    run(pipeline)
    assert copied(strom_topics, target) == list(range(30))


def test_a_micro_batch_that_a_sink_could_not_write_comes_again_the_same(strom_topics, run):
    topic = strom_topics.make(2)
    came, away = [], []
    pipeline = Pipeline("numbers")
    pipeline.topic("numbers", topic, json="n int")

    @pipeline.to_batches(of="numbers")
    def store(rows, number):
        came.append((number, sorted(row.n for row in rows.collect())))
        if away:
            raise ConnectionError("the database is away")

    send(strom_topics, topic, range(3))
    run(pipeline)
    send(strom_topics, topic, range(3, 7))
    away.append(True)
    with pytest.raises(StepError, match=r"^store: ConnectionError: the database is away"):
        run(pipeline)
    away.clear()
    # What has come meanwhile is no part of it.
    send(strom_topics, topic, range(7, 9))
    assert run(pipeline).state == DONE
    failed = (1, [3, 4, 5, 6])
    assert came == [(0, [0, 1, 2]), failed, failed, (2, [7, 8])]


def test_a_broker_that_does_not_answer_is_named_with_what_to_do(strom_topics, run):
    with pytest.raises(StepError, match=r"^copied: .*127\.0\.0\.1:1.*is it running.*-b, STROM"):
        run(copies("numbers", strom_topics.make(), **NOWHERE))


def test_a_broker_goes_away_and_comes_back_while_a_pipeline_runs(run, spark, tmp_path):
    broker = nodes.StromProcess(nodes.new_directory("away")).start()
    try:
        topics = Topics(broker.bootstrap)
        source, target = topics.make(), topics.make()
        pipeline = copies(source, target)
        send(topics, source, range(10))

        def go_away():
            broker.kill()
            broker.start()
            send(topics, source, range(10, 20))

        steps = Steps(Directory(tmp_path / "home", "copies"), (10, go_away), (20, lambda: None))
        status = run(pipeline, once=False, show=steps, bootstrap=broker.bootstrap)
        assert (status.state, status.error) == (STOPPED, None)
        assert copied(topics, target) == list(range(20))
    finally:
        broker.remove()


def totals(topic, found, *, columns="rider string, km int", also=None):
    """A pipeline with state: the kilometres of each rider."""
    pipeline = Pipeline("totals")
    pipeline.topic("rides", topic, json=columns)
    rides = "SELECT * FROM {rides}"
    if also is not None:
        pipeline.topic("more", also, json=columns)
        rides += " UNION ALL SELECT * FROM {more}"
    pipeline.sql("totals", f"SELECT rider, sum(km) AS km FROM ({rides}) GROUP BY rider")

    @pipeline.to_batches(of="totals", mode="update")
    def collect(rows, _number):
        found.update({row.rider: row.km for row in rows.collect()})

    return pipeline


def test_state_that_does_not_fit_is_refused_and_stays_as_it_was(spark, strom_topics, run):
    topic, other = strom_topics.make(), strom_topics.make()
    strom_topics.fill(topic, [b'{"rider": "a", "km": 1}', b'{"rider": "b", "km": 2}'])
    found = {}
    run(totals(topic, found))
    strom_topics.fill(topic, [b'{"rider": "a", "km": 10}'])
    with pytest.raises(ChangedError, match=r"sink 'collect'.*reads 'more' as well now.*--reset"):
        run(totals(topic, found, also=other))
    for columns in ("rider string, km double", "rider binary, km int"):
        with pytest.raises(PipelineError, match=r"collect.*--reset collect"):
            run(totals(topic, found, columns=columns))
    # The number of partitions is the checkpoint's, whatever the settings say now.
    spark.conf.set("spark.sql.shuffle.partitions", "5")
    try:
        run(totals(topic, found))
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", "2")
    assert found == {"a": 11, "b": 2}


def test_what_cuts_an_unfinished_micro_batch_otherwise_is_refused(strom_topics, run, tmp_path):
    """A row is known to be written by its task: cut otherwise, the rows would be there twice."""
    source, target = strom_topics.make(), strom_topics.make()
    send(strom_topics, source, range(20))
    run(copies(source, target))
    commits = Directory(tmp_path / "home", "copies").checkpoint("copied") / "commits"
    for last in commits.glob("*0*"):
        last.unlink()
    with pytest.raises(ChangedError, match=r"'copied'.*not finished.*minPartitions=4.*as it was"):
        run(copies(source, target, minPartitions=4))
    run(copies(source, target))
    run(copies(source, target, minPartitions=4))
    assert copied(strom_topics, target) == list(range(20))
