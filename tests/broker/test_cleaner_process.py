"""The process that cleans logs keeps out of the broker's way."""

import itertools
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from strom.broker import cleaner_process
from strom.broker.cleaner_process import (
    MAIN,
    NICENESS,
    PACE_BYTES,
    SESSION_NICENESS,
    Pace,
    framed,
)

NICENESS_MAX = 19
TOLD = "give_way(); print(os.nice(0)); print(open(SESSION_NICENESS).read())"


@pytest.mark.skipif(not Path(SESSION_NICENESS).exists(), reason="nothing weighs sessions here")
def test_it_gives_way_as_a_process_and_as_a_session():
    # As the broker starts it: in a session of its own, which would count like the broker's.
    done = subprocess.run(
        [sys.executable, "-c", f"import os; from strom.broker.cleaner_process import *; {TOLD}"],
        start_new_session=True,
        capture_output=True,
        text=True,
        check=True,
    )
    process, session = done.stdout.split("\n", 1)
    assert int(process) == min(os.nice(0) + NICENESS, NICENESS_MAX)
    assert session.strip().endswith(f"nice {NICENESS}")


def rests_of(monkeypatch, bytes_per_second, *pieces):
    """How long it rests after each piece, of which each takes two seconds, and works one."""
    clock, worked, rests = itertools.count(step=2), itertools.count(), []
    monkeypatch.setattr(cleaner_process, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(cleaner_process, "thread_time", lambda: next(worked))
    pace = Pace(bytes_per_second, None)
    monkeypatch.setattr(pace.over, "wait", rests.append)
    for piece in pieces:
        pace(piece)
    return rests


def test_it_rests_as_long_as_it_works(monkeypatch):
    assert rests_of(monkeypatch, float("inf"), PACE_BYTES - 1, 1) == [1]


def test_it_rests_longer_where_the_limit_asks_for_it(monkeypatch):
    assert rests_of(monkeypatch, PACE_BYTES / 10, PACE_BYTES, 3 * PACE_BYTES) == [8, 28]


def test_it_is_broken_off_while_it_rests():
    pace = Pace(1, None)
    threading.Timer(0.01, pace.over.set).start()
    with pytest.raises(InterruptedError):
        pace(PACE_BYTES)


def test_it_does_nothing_for_a_broker_that_went_while_it_was_starting():
    """It would write the files that the next broker's cleaner writes."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    command = [sys.executable, "-c", MAIN, str(gone.pid)]
    asked = framed((None, 0))
    done = subprocess.run(command, input=asked, capture_output=True, check=True, timeout=60)
    assert (done.stdout, done.stderr) == (b"", b"")
