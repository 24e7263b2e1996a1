"""What goes wrong for any command alike."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="no device that is always full")
@pytest.mark.parametrize("command", [("storage", "random-uuid"), ("topic", "size", "--json")])
def test_output_that_does_not_fit_its_disk_is_one_line(command):
    check_one_line(command)


@pytest.mark.skipif(not FULL.exists(), reason="no device that is always full")
def test_what_does_not_fit_is_not_taken_for_what_cannot_be_read(tmp_path):
    checkpoint = tmp_path / "recovery-point-offset-checkpoint"
    checkpoint.write_text("0\n0\n")
    check_one_line(("log", "dump", str(checkpoint)))


def check_one_line(command):
    for environment in buffered_or_not():
        with FULL.open("w") as full:
            ended = subprocess.run(
                [sys.executable, "-m", "strom", *command],
                stdout=full,
                stderr=subprocess.PIPE,
                env=environment,
                text=True,
                check=False,
            )
        assert ended.stderr == "strom: cannot write: No space left on device\n"
        assert ended.returncode == 1


def buffered_or_not():
    """The environment in which Python writes at the end of a command, and at once."""
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return plain, plain | {"PYTHONUNBUFFERED": "1"}


def test_a_reader_that_has_seen_enough_is_no_error_to_tell():
    for environment in buffered_or_not():
        reading, writing = os.pipe()
        os.close(reading)
        with open(writing, "w") as unread:
            ended = subprocess.run(
                [sys.executable, "-m", "strom", "storage", "random-uuid"],
                stdout=unread,
                stderr=subprocess.PIPE,
                env=environment,
                text=True,
                check=False,
            )
        assert (ended.stderr, ended.returncode) == ("", 1)


@pytest.mark.parametrize(
    ("closed", "command", "code"),
    [
        (0, ("produce", "t", "-b", "127.0.0.1:1"), 1),
        (1, ("storage", "info", "{formatted}"), 0),
        (2, ("storage", "info", "{formatted}"), 0),
        (2, ("storage", "info", "nowhere"), 1),
    ],
)
def test_a_stream_that_is_closed_is_nobody_there(strom, tmp_path, closed, command, code):
    """As `>&-` leaves it, and some schedulers."""
    strom("storage", "format", str(tmp_path))
    ended = subprocess.run(
        [sys.executable, "-m", "strom", *(each.format(formatted=tmp_path) for each in command)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: os.close(closed),
    )
    assert ended.returncode == code, ended.stderr
    assert bool(ended.stdout) == (code == 0 and closed != 1)
    assert ended.stderr.count("\n") == (code and closed != 2)
