"""What pyproject.toml cannot say: what is compiled.

- CYTHON, by Cython: the walk over the records of a batch, records as columns, columns as records,
  the blocks of lz4 frames, and what is in memory of a file. Without it `strom.records.walk`,
  `columns`, `packing`, `lz4_frame` and `strom.log.nowait` use those in Python.
- Each module with the line MARKER, by mypyc: the way of the bytes, from the sockets to the log and
  back. Without a compiler the same files run as Python. An editable install leaves them alone: who
  changes a module wants to run what is in the file.

All is `optional`: where there is no C compiler the install goes on without.
"""

import shutil
import sys
from pathlib import Path

from mypyc.build import mypycify
from setuptools import Extension, setup

CYTHON = ("records/_walk", "records/_columns", "records/_packing", "records/_lz4", "log/_nowait")

#: The line that marks a module for mypyc; its first, by custom.
MARKER = "# Compiled by mypyc."

#: `make check` is where types are checked; here they are taken from what is installed.
MYPY = ("--config-file=", "--follow-imports=silent", "--ignore-missing-imports")

# What an earlier build left there would go into this one's wheel, also modules that are gone.
shutil.rmtree("build", ignore_errors=True)


def marked() -> list[str]:
    """Return the files of the modules that mypyc compiles."""
    files = sorted(Path("src/strom").rglob("*.py"))
    return [str(each) for each in files if MARKER in each.read_text("utf-8").splitlines()]


def compiled() -> list[Extension]:
    """Return what is to be built."""
    extensions = [
        Extension(f"strom.{name.replace('/', '.')}", [f"src/strom/{name}.pyx"]) for name in CYTHON
    ]
    if "bdist_wheel" in sys.argv:
        # A file of C for each: in one file it takes the compiler twice as long.
        extensions += mypycify([*MYPY, *marked()], opt_level="2", debug_level="0", multi_file=True)
    for each in extensions:
        each.optional = True
    return extensions


setup(ext_modules=compiled())
