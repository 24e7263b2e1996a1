"""Checks of the code itself: the rules of the house that no linter knows."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 50
VAGUE_NAMES = re.compile(r"(Manager|Helper|Util|Utils|Impl|Base|Abstract|Info|Processor)$")
VAGUE_FILES = {"utils.py", "common.py", "helpers.py", "types.py", "misc.py"}
REMINDERS = re.compile(r"\b(TO" + "DO|FIX" + "ME|X" + "XX|HA" + r"CK)\b")

FILES = sorted([*(ROOT / "src" / "strom").rglob("*.py"), *(ROOT / "examples").rglob("*.py")])
TESTS = sorted((ROOT / "tests").rglob("*.py"))


def name_of(path):
    return str(path.relative_to(ROOT))


@pytest.fixture(scope="module")
def sources():
    """The text of each file, by its name."""
    return {name_of(path): path.read_text() for path in FILES}


@pytest.fixture(scope="module")
def trees(sources):
    return {name: ast.parse(source) for name, source in sources.items()}


@pytest.fixture(scope="module")
def nodes(trees):
    """What each file is made of, with the name of its file."""
    return [(name, node) for name, tree in trees.items() for node in ast.walk(tree)]


def test_files_open_by_saying_what_they_are_for(trees):
    assert not [name for name, tree in trees.items() if not ast.get_docstring(tree)]


def test_files_are_short(sources):
    lines = {name: source.count("\n") for name, source in sources.items()}
    assert not {name: count for name, count in lines.items() if count > FILE_LINES_MAX}


def test_functions_fit_on_a_screen(nodes):
    kind = ast.FunctionDef | ast.AsyncFunctionDef
    functions = [(name, node) for name, node in nodes if isinstance(node, kind)]
    long = [each for each in functions if each[1].end_lineno - each[1].lineno >= FUNCTION_LINES_MAX]
    assert not [(name, node.name) for name, node in long]


def test_classes_are_named_for_what_they_are(nodes):
    classes = [(name, node.name) for name, node in nodes if isinstance(node, ast.ClassDef)]
    assert not [each for each in classes if VAGUE_NAMES.search(each[1])]


def test_nothing_is_left_for_later(sources):
    assert not [name for name, source in sources.items() if REMINDERS.search(source)]


def test_every_queue_has_a_limit(sources):
    unlimited = re.compile(r"\bQueue\(\)")
    assert not [name for name, source in sources.items() if unlimited.search(source)]


def test_no_module_has_a_vague_name():
    assert not [name_of(path) for path in FILES if path.name in VAGUE_FILES]


def test_no_test_sleeps():
    sleeper = re.compile(r"\b(time|asyncio)\.sleep\((?!0\))")
    assert not [name_of(path) for path in TESTS if sleeper.search(path.read_text())]


def test_api_modules_define_their_key_versions_and_handler():
    for path in (ROOT / "src/strom/broker/api").glob("*.py"):
        if path.name == "__init__.py":
            continue
        tree = ast.parse(path.read_text())
        assigned = {
            target.id
            for node in tree.body
            if isinstance(node, ast.Assign | ast.AnnAssign)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)
        }
        functions = {
            node.name
            for node in tree.body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        assert {"KEY", "VERSIONS"} <= assigned, path.name
        assert "handle" in functions, path.name
        head = ast.get_docstring(tree)
        assert "Behaviour:" in head, path.name
        assert "Versions:" in head, path.name


def test_architecture_names_every_package():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    packages = [path.parent.name for path in (ROOT / "src/strom").glob("*/__init__.py")]
    assert not [name for name in packages if f"`{name}/`" not in text]


def test_architecture_names_no_package_that_is_gone():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    named = re.findall(r"^\| `(\w+)/` \|", text, re.MULTILINE)
    packages = {path.parent.name for path in (ROOT / "src/strom").rglob("__init__.py")}
    assert not set(named) - packages


def test_architecture_names_every_module_of_the_broker():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    table = text.partition("Inside `broker/`:")[2].partition("Beside the package:")[0]
    rows = re.findall(r"^\| (`.+?) \|", table, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([\w/]+)`", row)}
    modules = {path.stem for path in (ROOT / "src/strom/broker").glob("*.py")} - {"__init__"}
    assert named - {"api/"} == modules
