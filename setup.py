"""What pyproject.toml cannot say: what is made, and what is compiled.

- Kafka's messages: `strom.wire.generator` writes a module of classes, readers and writers for each
  of those that an API of the broker has, or that a log holds. An editable install has none of them:
  `strom.wire.messages` makes there what is asked for.
- CYTHON, by Cython: the walk over the records of a batch, records as columns, columns as records,
  the blocks of lz4 frames, and what is in memory of a file. Without it `strom.records.walk`,
  `columns`, `packing`, `lz4_frame` and `strom.log.nowait` use those in Python.
- Each module with the line MARKER, by mypyc: the way of the bytes, from the sockets to the log and
  back. The messages of an API module with the line MESSAGES_MARKER are compiled too. Without a
  compiler the same files run as Python. An editable install leaves them alone: an engineer who
  changes a module wants to run what is in the file.

All is `optional`: where there is no C compiler the install goes on without. A wheel is built from
a copy of the sources, so that nothing that is made lies beside them.
"""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from mypyc.build import mypycify
from setuptools import Extension, find_packages, setup

CYTHON = ("records/_walk", "records/_columns", "records/_packing", "records/_lz4", "log/_nowait")

#: The lines that mark a module, or the messages of an API, for mypyc; a module's first, by custom.
MARKER = "# Compiled by mypyc."
MESSAGES_MARKER = "# Messages compiled by mypyc."

#: `make check` is where types are checked; here they are taken from what is installed.
MYPY = ("--config-file=", "--follow-imports=silent", "--ignore-missing-imports")

IS_WHEEL = "bdist_wheel" in sys.argv
SOURCES = Path("build/sources" if IS_WHEEL else "src")
#: Compiled and made in a checkout, for itself.
OWN = ("*.egg-info", "__pycache__", "*.c", "*.so", "*.pyd", "made")

# What an earlier build left there would go into this one's wheel, also modules that are gone.
shutil.rmtree("build", ignore_errors=True)


def marked(directory: Path, marker: str = MARKER) -> list[Path]:
    """Return the files below a directory that have the line."""
    files = sorted(directory.rglob("*.py"))
    return [each for each in files if marker in each.read_text("utf-8").splitlines()]


def copy_sources() -> None:
    """Copy the sources, and make the modules of messages in the copy."""
    shutil.copytree("src", SOURCES, ignore=shutil.ignore_patterns(*OWN))
    made = SOURCES / "strom/wire/made"
    made.mkdir()
    (made / "__init__.py").write_text('"""Kafka\'s messages; generated."""\n')
    for name, source in made_sources():
        (made / f"{name}.py").write_text(source)


def made_sources() -> Iterator[tuple[str, str]]:
    """Yield the name and the source of each module of messages."""
    sys.path.insert(0, "src")
    from strom.wire.generator import source_of
    from strom.wire.kio_schema import data_of_kio, schema_of_kio

    apis = SOURCES / "strom/broker/api"
    is_compiled = {each.stem for each in marked(apis, MESSAGES_MARKER)}
    names = [each.stem for each in sorted(apis.glob("*.py")) if each.stem != "__init__"]
    messages = [(name, kind) for name in names for kind in ("request", "response")]
    for name, kind in (*messages, *((name, "data") for name in data_of_kio())):
        source = source_of(schema_of_kio(name, kind), f"{name} {kind}")
        yield f"{name}_{kind}", f"{MARKER}\n{source}" if name in is_compiled else source


def compiled() -> list[Extension]:
    """Return what is to be built."""
    extensions = [
        Extension(f"strom.{name.replace('/', '.')}", [str(SOURCES / f"strom/{name}.pyx")])
        for name in CYTHON
    ]
    if IS_WHEEL:
        files = map(str, marked(SOURCES))
        # A file of C for each: in one file it takes the compiler twice as long.
        extensions += mypycify([*MYPY, *files], opt_level="2", debug_level="0", multi_file=True)
    for each in extensions:
        each.optional = True
    return extensions


if IS_WHEEL:
    copy_sources()
setup(
    ext_modules=compiled(),
    packages=find_packages(str(SOURCES)),
    package_dir={"": str(SOURCES)},
)
