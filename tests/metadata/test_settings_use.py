"""Every setting is used somewhere, or says why not; the page that documents them is true."""

import ast
import functools
import importlib.util
from pathlib import Path

from strom.metadata.settings.catalogue import BROKER, CLIENT_METRICS, GROUP, TOPIC, broker_names
from strom.metadata.settings.definition import USED

ROOT = Path(__file__).parent.parent.parent
SOURCE = ROOT / "src" / "strom"
SETTINGS = SOURCE / "metadata" / "settings"

#: Of the package of settings, what puts them to use; the rest defines, relates and checks them.
USING = {"values.py", "listeners.py"}


def words_in_code():
    """Return every text that stands as a constant in code that could use a setting."""
    words = set()
    for path in SOURCE.rglob("*.py"):
        defines = path.parent == SETTINGS and path.name not in USING
        # The test kit and the command line give settings to a broker; they read none. Spark's side
        # knows those of clients, some by the same names.
        if defines or path.relative_to(SOURCE).parts[0] in ("testing", "cli", "spark"):
            continue
        nodes = [
            node
            for part in ast.parse(path.read_text()).body
            if not (path.parent == SETTINGS and only_checks(part))
            for node in ast.walk(part)
        ]
        given = {id(node.elts[0]) for node in nodes if is_given(node)}
        for node in nodes:
            is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
            if is_text and id(node) not in given:
                words.add(node.value)
    return words


def only_checks(part):
    """Whether it is a function that refuses what will not do, and puts nothing to use."""
    return isinstance(part, ast.FunctionDef) and part.name.startswith("require_")


def is_given(node):
    """Whether it is a pair of a name and a fixed value: a setting of a new topic, not one read."""
    return (
        isinstance(node, ast.Tuple)
        and len(node.elts) == 2
        and all(isinstance(each, ast.Constant) for each in node.elts)
    )


@functools.cache
def used_names():
    """Return the settings that the code reads, also by what they stand in for."""
    words = words_in_code()
    names = words & (BROKER.keys() | TOPIC.keys() | GROUP.keys() | CLIENT_METRICS.keys())
    # A topic's setting that is read brings its stand-in with it, and that its other units.
    names |= {TOPIC[name].stand_in for name in names if name in TOPIC}
    names |= {each for name in names for each in broker_names(name)}
    return names


def test_every_setting_is_used_or_says_why_not():
    used = used_names()
    idle = {
        name
        for settings in (BROKER, TOPIC, GROUP, CLIENT_METRICS)
        for name, each in settings.items()
        if each.accepted == USED and name not in used
    }
    assert not idle


def test_no_setting_that_is_used_says_that_it_has_no_effect():
    used = used_names()
    assert not {name for name, each in BROKER.items() if each.accepted != USED and name in used}


def test_the_page_of_settings_is_as_the_definitions_say():
    spec = importlib.util.spec_from_file_location(
        "write_configuration", ROOT / "tools" / "write_configuration.py"
    )
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.PAGE.read_text() == tool.page(), "run tools/write_configuration.py"
