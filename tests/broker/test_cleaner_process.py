"""The process that cleans logs keeps out of the broker's way."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from strom.broker.cleaner_process import NICENESS, SESSION_NICENESS

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
