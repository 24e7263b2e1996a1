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

#: The lines that setup.py looks for: of a module, and of an API whose messages are compiled.
MARKER = "# Compiled by mypyc."
MESSAGES_MARKER = "# Messages compiled by mypyc."
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


def marked(marker):
    """Return the paths of the modules that have the marker."""
    return [
        path.relative_to(SOURCES).with_suffix("")
        for path in sorted(SOURCES.rglob("*.py"))
        if marker in path.read_text().splitlines()
    ]


def test_every_marked_module_is_compiled_and_loads():
    apis = [path.name for path in marked(MESSAGES_MARKER)]
    names = [".".join(path.parts) for path in marked(MARKER)]
    assert apis
    assert names
    names += [f"strom.wire.made.{api}_{kind}" for api in apis for kind in ("request", "response")]
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


def test_messages_that_were_made_at_build_time_are_those_of_kio():
    """The tests of the messages, with the modules that are shipped."""
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/wire"],
        cwd=SOURCES.parent,
        env={**os.environ, "PYTHONPATH": COPY},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-5000:]
    assert " passed" in run.stdout
