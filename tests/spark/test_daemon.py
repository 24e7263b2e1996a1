"""What Spark's workers are forked from: all loaded, and no thread that a fork would not have."""

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is Spark's own elsewhere")

END_SECONDS = 60
OWN, SPARKS = "strom.spark.daemon", "pyspark.daemon"


@pytest.fixture
def start():
    """Starts a daemon as Spark does, and waits until it takes calls; a process each."""
    started = []

    def begin(module, worker="pyspark.worker", **environment):
        environment = {**os.environ, "PYTHON_UNIX_DOMAIN_ENABLED": "false", **environment}
        process = subprocess.Popen(
            [sys.executable, "-m", module, worker],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )
        started.append(process)
        (port,) = struct.unpack("!i", process.stdout.read(4))
        assert port > 0
        return process.pid

    yield begin
    for process in started:
        process.stdin.close()
        process.wait(END_SECONDS)
        process.stdout.close()


def command_of(pid):
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")


def threads_of(pid):
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def maps(pid, library):
    return library in Path(f"/proc/{pid}/maps").read_text()


def test_all_is_loaded_and_there_is_no_thread(start):
    pid = start(OWN, OMP_NUM_THREADS="1")
    assert OWN in command_of(pid)
    assert maps(pid, "/pyarrow/") and maps(pid, "/pandas/")
    assert threads_of(pid) == 1


def test_where_a_library_starts_threads_sparks_own_takes_over(start):
    pid = start(OWN, OMP_NUM_THREADS="2", OPENBLAS_NUM_THREADS="2")
    assert SPARKS in command_of(pid)
    assert not maps(pid, "/pyarrow/")


def test_where_something_cannot_be_loaded_sparks_own_takes_over(start, tmp_path):
    (tmp_path / "pandas.py").write_text("raise OSError('broken')")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    assert SPARKS in command_of(start(OWN, OMP_NUM_THREADS="1", PYTHONPATH=path))


def test_who_does_not_read_or_write_is_not_kept_waiting(start):
    pid = start(OWN, "pyspark.sql.worker.lookup_data_sources", OMP_NUM_THREADS="1")
    assert OWN in command_of(pid)
    assert not maps(pid, "/pyarrow/")


@pytest.mark.slow
def test_workers_of_a_session_are_forked_with_all_loaded(spark):
    def look(_):
        yield os.getppid(), "pandas" in sys.modules, "strom.spark.fetching" in sys.modules

    ((pid, *has),) = spark.sparkContext.parallelize([0], 1).mapPartitions(look).collect()
    assert OWN in command_of(pid)
    assert threads_of(pid) == 1
    assert has == [True, True]
    assert os.environ["PYSPARK_PYTHON"] == sys.executable


def test_a_fork_draws_numbers_of_its_own():
    code = """
import os
from strom.spark import daemon
assert daemon.load()
import numpy as np
for _ in range(2):
    if not os.fork():
        print(np.random.rand(), flush=True)
        os._exit(0)
    os.wait()
"""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    first, second = found.stdout.split()
    assert first != second


@pytest.mark.parametrize(
    ("path", "found"), [([str(Path(__file__).parent.parent.parent / "src")], True), ([], False)]
)
def test_it_is_chosen_only_where_other_processes_find_it(monkeypatch, tmp_path, path, found):
    from strom.spark import session

    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", str(without_site(tmp_path)))
    assert session._is_found_by_others() is found


def without_site(directory):
    """A Python that has no packages installed."""
    script = directory / "python"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    script.chmod(0o755)
    return script
