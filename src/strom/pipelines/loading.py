"""A pipeline from its file: the file is run as Python, and must leave one Pipeline behind.

The file's directory is on the path meanwhile and afterwards, so that it can import its neighbours,
also later, inside a step.
"""

import importlib.util
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from strom.pipelines.declaration import Pipeline
from strom.pipelines.failure import DeclarationError, PipelineError


def load(path: Path) -> Pipeline:
    """Return the pipeline that a file declares."""
    if not path.is_file():
        raise PipelineError(f"{path} is no file: name the Python file that declares the pipeline")
    found = [value for value in vars(_run(path)).values() if isinstance(value, Pipeline)]
    names = sorted({pipeline.name for pipeline in found})
    if not found:
        raise PipelineError(
            f"{path} declares no pipeline: it needs pipeline = Pipeline('…') "
            "(from strom.pipelines import Pipeline)"
        )
    if len({id(each) for each in found}) > 1:
        raise PipelineError(
            f"{path} declares {len(names)} pipelines, {', '.join(names)}: a file has one"
        )
    return found[0]


def _run(path: Path) -> ModuleType:
    """Run the file as a module of its own name."""
    directory = str(path.parent.resolve())
    if directory not in sys.path:
        sys.path.insert(0, directory)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise PipelineError(f"{path} is no Python file: its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    try:
        with _known(module):
            spec.loader.exec_module(module)
    except DeclarationError as error:
        raise PipelineError(f"{path}: {error}") from None
    except (Exception, SystemExit) as error:
        raise PipelineError(_told(path, error)) from error
    return module


@contextmanager
def _known(module: ModuleType) -> Iterator[None]:
    """Have Python know the module while it runs, for what looks for the module of a class.

    Not afterwards: Spark's workers would be told to import it, and have no such file.
    """
    name = module.__name__
    if name in sys.modules:
        yield
        return
    sys.modules[name] = module
    try:
        yield
    finally:
        del sys.modules[name]


def _told(path: Path, error: BaseException) -> str:
    """Return what is wrong with a file, with the line of it."""
    if isinstance(error, SyntaxError):
        # It may be in a file that this one imports.
        named = Path(error.filename or path)
        of = path if named.resolve() == path.resolve() else named
        return f"{of}, line {error.lineno}: {error.msg}" if error.lineno else f"{of}: {error.msg}"
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).resolve() == path.resolve()
    ]
    place = f"{path}, line {lines[-1]}" if lines else str(path)
    hint = ""
    if isinstance(error, ModuleNotFoundError) and error.name == "pyspark":
        hint = "; pip install 'strom[spark]'"
    return f"{place}: {type(error).__name__}: {error}{hint}"
