"""A pipeline from its file, and what is wrong with a file."""

import json
import sys

import pytest

from strom.pipelines.failure import PipelineError
from strom.pipelines.loading import load

HEAD = "from strom.pipelines import Pipeline\n"


@pytest.fixture
def written(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.path", ["", *__import__("sys").path])

    def write(text, name="rides.py"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def test_a_file_leaves_one_pipeline(written):
    assert load(written(HEAD + "any_name = Pipeline('rides')")).name == "rides"


def test_a_file_may_import_its_neighbours(written):
    written("KM = 10", "neighbour_of_rides.py")
    path = written(HEAD + "import neighbour_of_rides as n\np = Pipeline(f'over-{n.KM}')")
    assert load(path).name == "over-10"


def test_a_file_may_have_classes_of_any_kind(written):
    """Python looks for a class's module while it makes a dataclass whose types are texts."""
    head = "from __future__ import annotations\nfrom dataclasses import dataclass\n" + HEAD
    path = written(head + "@dataclass\nclass A:\n    n: int\np = Pipeline('a')", "odd_name.py")
    assert load(path).name == "a"
    # Else Spark's workers, which have no such file, would be told to import it.
    assert "odd_name" not in sys.modules


def test_a_file_does_not_take_the_place_of_a_module(written):
    path = written(HEAD + "import json\np = Pipeline(json.loads('\"a\"'))", "json.py")
    assert load(path).name == "a"
    assert sys.modules["json"] is json


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = 1", "declares no pipeline"),
        (HEAD + "a = Pipeline('a')\nb = Pipeline('b')", "declares 2 pipelines, a, b"),
        (HEAD + "\na = Pipeline(", "line 3: "),
        (HEAD + "\na = Pipelin('a')", "line 3: NameError"),
        (HEAD + "a = Pipeline('a')\na.sql('b', '}')", "step 'b'"),
        ("import sys\nsys.exit(3)", "line 2: SystemExit: 3"),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_line(written, text, told):
    with pytest.raises(PipelineError) as caught:
        load(written(text))
    assert told in str(caught.value)
    assert "rides.py" in str(caught.value)


def test_a_neighbour_that_is_no_python_is_named_itself(written):
    neighbour = written("KM = 10\n\nKM = (", "half_written_neighbour.py")
    path = written(HEAD + "import half_written_neighbour\np = Pipeline('a')")
    with pytest.raises(PipelineError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{neighbour}, line 3: ")


def test_a_file_of_no_lines_at_all_is_named_without_one(written):
    path = written("\0")
    with pytest.raises(PipelineError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(PipelineError, match="is no file"):
        load(tmp_path / "gone.py")
