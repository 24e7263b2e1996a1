"""The modules that mypyc compiles: each of them is compiled in what is installed, and loads there.

`make test` builds that copy. A compiler that fails says so, but `setup.py` makes a package without
what it could not compile; and some of what mypyc compiles cannot be loaded.
"""

import os
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

#: The line that setup.py looks for.
MARKER = "# Compiled by mypyc."
SOURCES = Path(__file__).resolve().parents[1] / "src"
COPY = os.environ.get("STROM_COMPILED")

#: Says of each module that is named where it was loaded from, or why it was not.
LOADING = """
import importlib, sys
for name in sys.argv[1:]:
    try:
        print(name, importlib.import_module(name).__file__)
    except Exception as error:
        print(name, repr(error).replace("\\n", " "))
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(COPY is None, reason="no compiled copy (STROM_COMPILED)"),
]


def marked():
    """Return the names of the modules that have the marker."""
    return sorted(
        ".".join(path.relative_to(SOURCES).with_suffix("").parts)
        for path in SOURCES.rglob("*.py")
        if MARKER in path.read_text().splitlines()
    )


def test_every_marked_module_is_compiled_and_loads():
    names = marked()
    assert names
    run = subprocess.run(
        [sys.executable, "-c", LOADING, *names],
        env={**os.environ, "PYTHONPATH": COPY},
        capture_output=True,
        text=True,
        check=False,
    )
    loaded = dict(line.split(" ", 1) for line in run.stdout.splitlines())
    wrong = {
        name: loaded.get(name, run.stderr)
        for name in names
        if not loaded.get(name, "").endswith(tuple(EXTENSION_SUFFIXES))
    }
    assert not wrong
