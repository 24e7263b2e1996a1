"""What a pipeline leaves on disk: lock, status, request to stop, shapes, checkpoints."""

import errno
import os
import subprocess
import sys

import pytest

from strom.pipelines.directory import Directory, directories
from strom.pipelines.failure import BusyError, PipelineError
from strom.pipelines.progress import SinkProgress
from strom.pipelines.shape import Shape
from strom.pipelines.status import DIED, DONE, RUNNING, Status

STATUS = Status("rides", "rides.py", RUNNING, False, 1, 2, 3, None, (SinkProgress("out", "g", 7),))


@pytest.fixture
def directory(tmp_path):
    return Directory(tmp_path / "home", "rides")


def test_a_status_comes_back(directory):
    with directory.held():
        directory.write_status(STATUS)
        assert directory.status() == STATUS
    assert [each.pipeline for each in directories(directory.path.parent)] == ["rides"]


def test_a_run_that_is_not_alive_has_died(directory):
    with directory.held():
        directory.write_status(STATUS)
    assert directory.status().state == DIED


def test_a_run_that_ended_has_not_died(directory):
    with directory.held():
        directory.write_status(Status("rides", "rides.py", DONE, True, 1, 2, 3))
    assert directory.status().state == DONE


def test_where_nothing_ran_there_is_no_status(directory):
    assert directory.status() is None
    assert directories(directory.path.parent) == []


def test_a_pipeline_runs_once_at_a_time(directory):
    with directory.held():
        assert directory.is_held()
        with pytest.raises(BusyError, match="strom pipeline stop rides"), directory.held():
            pass
    assert not directory.is_held()


def test_a_killed_process_holds_nothing(directory):
    code = (
        "import sys; from pathlib import Path; from strom.pipelines.directory import Directory\n"
        "with Directory(Path(sys.argv[1]), 'rides').held(): print('held', flush=True); input()"
    )
    command = [sys.executable, "-c", code, str(directory.path.parent)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "held\n"
        assert directory.is_held()
        process.kill()
        process.wait()
    assert not directory.is_held()


def test_a_request_to_stop_is_for_the_run_that_it_finds(directory):
    with directory.held():
        assert not directory.is_asked_to_stop()
        directory.ask_to_stop()
        assert directory.is_asked_to_stop()
    with directory.held():
        assert not directory.is_asked_to_stop()


def test_shapes_come_back(directory):
    assert directory.shapes() == {}
    shapes = {"out": Shape({"rides": "subscribe=rides"}, "topic out", ["Aggregate"])}
    with directory.held():
        directory.write_shapes(shapes)
    assert directory.shapes() == shapes


def test_a_micro_batch_is_finished_when_spark_has_noted_it(directory):
    checkpoint = directory.checkpoint("out")
    assert directory.unfinished("out") is None
    for name in ("offsets/9", "offsets/10", "offsets/.10.crc", "commits/9"):
        (checkpoint / name).parent.mkdir(parents=True, exist_ok=True)
        (checkpoint / name).touch()
    assert directory.unfinished("out") == 10
    (checkpoint / "commits/10").touch()
    assert directory.unfinished("out") is None


def test_a_forgotten_checkpoint_is_gone_also_after_half_a_removal(directory):
    checkpoint = directory.checkpoint("out")
    for left in (checkpoint, checkpoint.with_name(".out.gone")):
        (left / "offsets").mkdir(parents=True)
    directory.forget("out")
    directory.forget("out")
    assert list(checkpoint.parent.iterdir()) == []


@pytest.mark.parametrize("text", ["{", "{}", "[]", '{"sinks": [{"of": "another version"}]}'])
def test_a_file_that_is_broken_is_named(directory, text):
    directory.path.mkdir(parents=True)
    (directory.path / "status.json").write_text(text)
    with pytest.raises(PipelineError, match=r"status\.json cannot be read.*remove it"):
        directory.status()
    (directory.path / "shapes.json").write_text(text.replace("{}", '{"a": {}}'))
    with pytest.raises(PipelineError, match=r"shapes\.json cannot be read.*remove it"):
        directory.shapes()


def test_a_request_that_cannot_be_left_is_told(directory):
    with pytest.raises(PipelineError, match="cannot be written"):
        directory.ask_to_stop()


def test_a_full_disk_is_told_with_what_to_do(tmp_path, monkeypatch):
    def no_room(_descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    directory = Directory(tmp_path, "rides")
    with directory.held():
        monkeypatch.setattr("os.fsync", no_room)
        with pytest.raises(PipelineError, match=r"shapes\.json .*No space left.*make room where"):
            directory.write_shapes({})
