"""`strom pipeline`, as far as it goes without Spark."""

import json
import os
import subprocess
import sys

import pytest

from strom.pipelines.directory import Directory
from strom.pipelines.progress import SinkProgress
from strom.pipelines.status import DONE, RUNNING, STOPPED, Status

RIDES = """
from strom.pipelines import Pipeline

pipeline = Pipeline("rides")
pipeline.topic("rides")
pipeline.sql("long_rides", "SELECT * FROM {rides} WHERE km > 10")
pipeline.to_topic("long-rides", of="long_rides", key="rider")
"""
PROGRESS = SinkProgress(
    "long-rides", "rides.long-rides", 1234, 99.5, 7, 250, 12, 2048, 3, None, batch=4
)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "rides.py"
    path.write_text(RIDES)
    return path


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


def status(state):
    return Status("rides", "/rides.py", state, False, os.getpid(), 1, 2, None, (PROGRESS,))


def test_a_pipeline_that_is_all_right(strom, file):
    result = strom("pipeline", "validate", str(file))
    assert (result.exit_code, result.stdout) == (
        0,
        "rides is all right: 1 source(s), 1 step(s), 1 sink(s)\n",
    )


def test_all_that_is_wrong_is_told_a_line_each(strom, file):
    file.write_text(RIDES.replace("{rides}", "{ride}").replace('"long_rides", key', '"long", key'))
    result = strom("pipeline", "validate", str(file))
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "error: step 'long_rides' reads 'ride', which is unknown: did you mean 'rides'?",
        "error: sink 'long-rides' reads 'long', which is unknown: there is long_rides, rides",
    ]


def test_what_is_wrong_is_there_for_programs(strom, file):
    file.write_text(RIDES + "pipeline.topic('weather')\n")
    found = json.loads(strom("pipeline", "validate", str(file), "--json").stdout)
    assert found["problems"] == []
    assert found["warnings"] == ["source 'weather' is read by nobody and will not run"]


@pytest.mark.parametrize("verb", ["run", "graph"])
def test_a_wrong_pipeline_is_used_wrongly(strom, file, verb):
    file.write_text(RIDES.replace("{rides}", "{ride}"))
    result = strom("pipeline", verb, str(file))
    assert result.exit_code == 2
    assert result.stderr.startswith("strom: step 'long_rides' reads 'ride'")


@pytest.mark.parametrize("verb", ["run", "validate", "graph"])
def test_a_file_that_is_not_there_is_one_line(strom, tmp_path, verb):
    result = strom("pipeline", verb, str(tmp_path / "gone.py"))
    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 1


def test_the_graph_as_text_svg_and_json(strom, file, tmp_path):
    text = strom("pipeline", "graph", str(file)).stdout
    svg = tmp_path / "rides.svg"
    shown = strom("pipeline", "graph", str(file), "--svg", str(svg), "--json")
    assert text.splitlines()[-1] == "   └─▶ long-rides  topic long-rides"
    assert svg.read_text().startswith("<svg ")
    nodes = json.loads(shown.stdout)["nodes"]
    assert [(node["name"], node["kind"], node["inputs"]) for node in nodes] == [
        ("rides", "source", []),
        ("long_rides", "step", ["rides"]),
        ("long-rides", "sink", ["long_rides"]),
    ]


def test_an_svg_that_cannot_be_written(strom, file):
    result = strom("pipeline", "graph", str(file), "--svg", "/no/such/directory/x.svg")
    assert (result.exit_code, "cannot be written" in result.stderr) == (1, True)


def test_what_has_run_is_listed_and_shown(strom, home):
    directory = Directory(home, "rides")
    with directory.held():
        directory.write_status(status(DONE))
    listed = strom("pipeline", "list", "--dir", str(home)).stdout.splitlines()
    shown = strom("pipeline", "status", "rides", "--dir", str(home)).stdout
    for_programs = json.loads(
        strom("pipeline", "status", "rides", "-d", str(home), "--json").stdout
    )
    assert listed[1].split() == ["rides", "done", "1", "1234", "/rides.py"]
    assert "1,234" in shown
    assert "2.0 KB" in shown
    assert "250 ms" in shown
    assert for_programs["sinks"][0]["lag"] == 7
    assert json.loads(strom("pipeline", "list", "-d", str(home), "--json").stdout) == [for_programs]


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_one_that_cannot_be_read_does_not_hide_the_others(strom, home, more):
    for name in ("broken", "rides"):
        with (directory := Directory(home, name)).held():
            directory.write_status(status(DONE))
    (home / "broken" / "status.json").write_text('{"pipeline": "broken"')
    result = strom("pipeline", "list", "--dir", str(home), *more)
    assert "/rides.py" in result.stdout
    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 1
    assert "broken/status.json cannot be read" in result.stderr


def test_a_pipeline_that_never_ran_here(strom, home):
    with (directory := Directory(home, "rides")).held():
        directory.write_status(status(DONE))
    result = strom("pipeline", "status", "ride", "--dir", str(home))
    assert result.exit_code == 1
    assert "did you mean 'rides'?" in result.stderr


def test_what_does_not_run_is_not_stopped(strom, home):
    with (directory := Directory(home, "rides")).held():
        directory.write_status(status(RUNNING))
    result = strom("pipeline", "stop", "rides", "--dir", str(home))
    assert (result.exit_code, "state: died" in result.stderr) == (1, True)


def test_a_pipeline_that_does_not_stop_in_time_keeps_the_request(strom, home):
    with (directory := Directory(home, "rides")).held():
        directory.write_status(status(RUNNING))
        result = strom("pipeline", "stop", "rides", "--dir", str(home), "--timeout", "0")
        assert result.exit_code == 1
        assert "has not stopped within 0 s" in result.stderr
        assert directory.is_asked_to_stop()


def test_stop_waits_for_the_end(strom, home):
    code = (
        "import sys; from pathlib import Path; from time import sleep\n"
        "from strom.pipelines.directory import Directory\n"
        "from strom.pipelines.status import Status\n"
        "d = Directory(Path(sys.argv[1]), 'rides')\n"
        "def say(state): d.write_status(Status('rides', 'f', state, False, 1, 1, 1))\n"
        "with d.held():\n"
        "    say('running'); print('held', flush=True)\n"
        "    while not d.is_asked_to_stop(): sleep(0.05)\n"
        "    say('stopped')\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(home)], stdout=subprocess.PIPE, text=True
    ) as runner:
        assert runner.stdout.readline() == "held\n"
        result = strom("pipeline", "stop", "rides", "--dir", str(home))
    assert (result.exit_code, result.stdout) == (0, f"rides  {STOPPED}\n")
