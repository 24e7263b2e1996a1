"""What Spark's Python processes are forked from: a fork is what a start would have been."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Spark starts Python elsewhere")

from strom.spark import fork_call, fork_server  # noqa: E402
from strom.spark.fork_server import Request, can_be_forked  # noqa: E402

END_SECONDS = 60
#: Tells who it is, and says what it is told.
MODULE = """
import json, os, sys
seen = {
    "pid": os.getpid(),
    "parent": os.getppid(),
    "arguments": sys.argv[1:],
    "path": sys.path[:3],
    "has": "pyspark.worker" in sys.modules,
    "word": os.environ.get("PYTHON_WORD"),
    "directory": os.getcwd(),
    "name": __name__,
}
print(json.dumps(seen), flush=True)
for line in sys.stdin:
    print(line.strip()[::-1], file=sys.stderr, flush=True)
sys.exit(3)
"""
FORKED = {**os.environ, **fork_server.FOR_ALL, "OMP_NUM_THREADS": "1"}


@pytest.fixture
def place(tmp_path):
    """Where a module is that Spark might run."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "telling.py").write_text(MODULE)
    return tmp_path


@pytest.fixture
def processes():
    """Ends what a test has started."""
    started = []
    yield started
    for each in started:
        each.kill()
        each.communicate()


@pytest.fixture
def serve(place, processes):
    def begin(**environment):
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(place / "socket"))
            listener.listen()
            server = subprocess.Popen(
                [sys.executable, "-m", fork_server.__name__, str(listener.fileno())],
                stdin=subprocess.PIPE,
                pass_fds=[listener.fileno()],
                env={**FORKED, **environment},
            )
        processes.append(server)
        return server

    return begin


@pytest.fixture
def call(place, processes):
    """Starts what Spark starts; what it tells of itself then."""

    def start(*arguments, **environment):
        path = os.pathsep.join([str(place / "lib"), "nowhere"])
        command = [sys.executable, "-I", "-S", fork_call.__file__, str(place / "socket")]
        called = subprocess.Popen(
            [*command, sys.executable, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=place / "lib",
            env={**FORKED, "PYTHONPATH": path, "PYTHON_WORD": "hello", **environment},
        )
        processes.append(called)
        return called, json.loads(called.stdout.readline() or "{}")

    return start


def test_a_fork_has_all_that_a_process_has(serve, call, place):
    server = serve()
    called, seen = call("-m", "telling", "a", "b")
    assert seen["parent"] == server.pid != called.pid
    assert seen["has"]
    assert seen["name"] == "__main__"
    assert seen["arguments"] == ["a", "b"]
    assert seen["directory"] == str(place / "lib")
    assert seen["path"][:2] == [str(place / "lib"), str(place / "lib" / "nowhere")]
    assert seen["word"] == "hello"
    _, told = called.communicate("olleh\n", END_SECONDS)
    assert told == "hello\n"


def test_who_calls_ends_when_the_fork_is_killed(serve, call):
    serve()
    called, seen = call("-m", "telling")
    os.kill(seen["pid"], signal.SIGKILL)
    called.wait(END_SECONDS)


def test_a_fork_ends_when_who_called_is_told_to(serve, call):
    serve()
    called, seen = call("-m", "telling")
    watch = os.pidfd_open(seen["pid"])
    called.terminate()
    called.wait(END_SECONDS)
    # Its end is what the other waited for.
    with pytest.raises(ProcessLookupError):
        signal.pidfd_send_signal(watch, 0)
    os.close(watch)


def test_a_fork_outlives_what_it_was_forked_from(serve, call):
    server = serve()
    called, _ = call("-m", "telling")
    server.stdin.close()
    assert server.wait(END_SECONDS) == 0
    assert called.communicate("olleh\n", END_SECONDS)[1] == "hello\n"


def is_its_own(called, seen):
    return seen["pid"] == called.pid and not seen["has"]


def test_without_anybody_behind_it_python_starts(call):
    called, seen = call("-m", "telling", "a")
    assert is_its_own(called, seen)
    assert seen["arguments"] == ["a"]
    called.communicate("", END_SECONDS)
    assert called.returncode == 3


def test_where_a_library_starts_threads_python_starts(serve, call):
    serve(OMP_NUM_THREADS="2", OPENBLAS_NUM_THREADS="2")
    assert is_its_own(*call("-m", "telling"))


def test_what_is_refused_is_started(serve, call):
    serve()
    assert is_its_own(*call("-m", "telling", PYTHONHASHSEED="1"))


def test_what_is_no_module_is_started(serve, call):
    serve()
    called, _ = call("-c", "import os; print(os.getpid())")
    called.communicate("", END_SECONDS)
    assert called.returncode == 0


@pytest.mark.parametrize(
    ("changed", "can"),
    [
        ({}, True),
        ({"SPARK_JOB_ARTIFACT_UUID": "default"}, True),
        ({"PYTHON_WORKER_FACTORY_SECRET": "word"}, True),
        ({"PYTHONPATH": "elsewhere"}, True),
        ({"OMP_NUM_THREADS": "1"}, True),
        ({"OMP_NUM_THREADS": "2"}, False),
        ({"PYTHONHASHSEED": "random"}, False),
        ({"LANG": "tlh"}, False),
        ({"ARROW_DEFAULT_MEMORY_POOL": "system"}, False),
    ],
)
def test_what_another_environment_would_load_otherwise_is_refused(changed, can):
    request = Request(["-m", "pyspark.daemon"], {**os.environ, **changed}, "/")
    assert can_be_forked(request) is can


@pytest.mark.parametrize("arguments", [[], ["-m"], ["-c", "pass"], ["telling.py"]])
def test_only_a_module_is_forked(arguments):
    assert not can_be_forked(Request(arguments, dict(os.environ), "/"))


def test_a_script_stands_in_for_python(place):
    code = """
import subprocess
from strom.spark.stand_in import start_stand_in
script = start_stand_in()
assert script == start_stand_in()
print(script, flush=True)
for arguments in ["-c", "import sys; print(sys.executable)"], ["-m", "telling", "a b"]:
    subprocess.run([script, *arguments], stdin=subprocess.DEVNULL)
"""
    path = os.pathsep.join([str(place / "lib"), *filter(None, [os.environ.get("PYTHONPATH")])])
    # As Spark runs it: with what it has set for all of them.
    environment = {**FORKED, "PYTHONPATH": path}
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True
    )
    script, executable, told = found.stdout.splitlines()
    seen = json.loads(told)
    assert executable == sys.executable
    assert seen["has"] and seen["arguments"] == ["a b"]
    assert not Path(script).parent.exists()


def test_where_python_does_not_start_without_settings_nothing_stands_in(monkeypatch):
    from strom.spark import stand_in

    monkeypatch.setattr(stand_in, "_LEAN", [sys.executable, "-c", "raise SystemExit(1)"])
    assert stand_in.start_stand_in.__wrapped__() is None


def test_where_the_path_is_too_long_for_an_address_nothing_stands_in(monkeypatch, tmp_path):
    from strom.spark import stand_in

    (tmp_path / ("long" * 50)).mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / ("long" * 50)))
    assert stand_in.start_stand_in.__wrapped__() is None


@pytest.mark.parametrize(
    ("home", "platform", "can"),
    [(None, "linux", True), ("/opt/spark", "linux", False), (None, "darwin", False)],
)
def test_a_spark_that_was_chosen_has_its_own_processes(monkeypatch, home, platform, can):
    from strom.spark import session

    monkeypatch.delenv("SPARK_HOME", raising=False)
    if home is not None:
        monkeypatch.setenv("SPARK_HOME", home)
    monkeypatch.setattr(sys, "platform", platform)
    assert session._can_fork() is can
