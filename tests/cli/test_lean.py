import subprocess
import sys

import pytest

from strom.cli import broker, up
from strom.cli.lean import parse

DEFAULTS = {
    "port": 9092,
    "host": "127.0.0.1",
    "dir": "strom-data",
    "memory": False,
    "http_port": None,
    "http_host": None,
    "override": [],
    "json": False,
}


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ("", {}),
        ("--port 0", {"port": 0}),
        ("--port=19092 --memory", {"port": 19092, "memory": True}),
        ("--http-port 0", {"http_port": 0}),
        ("--http-port 0 --http-host ::", {"http_port": 0, "http_host": "::"}),
        ("--port 0 --json", {"port": 0, "json": True}),
        ("-p 1 -d here", {"port": 1, "dir": "here"}),
        ("-o a=b --override=c=d=e", {"override": ["a=b", "c=d=e"]}),
    ],
)
def test_what_is_plainly_right_is_read(words, values):
    assert parse(up.OPTIONS, words.split()) == DEFAULTS | values


@pytest.mark.parametrize(
    "words",
    [
        "--help",
        "--prot 1",
        "--port",
        "--port x",
        "--port -1",
        "--port 65536",
        "--memory=yes",
        "extra",
        "-h",
    ],
)
def test_everything_else_is_left_to_typer(words):
    assert parse(up.OPTIONS, words.split()) is None


def test_a_file_is_needed_to_start_with_one():
    assert parse(broker.OPTIONS, []) is None
    parsed = parse(broker.OPTIONS, ["--config", "f"])
    assert (parsed["config"], parsed["override"], parsed["daemon"]) == ("f", [], False)


def test_two_runs_do_not_share_their_lists():
    parse(up.OPTIONS, ["-o", "a=b"])["override"].append("c=d")
    assert parse(up.OPTIONS, []) == DEFAULTS


def test_typer_knows_the_same_options(strom):
    for words, options in ((("up",), up.OPTIONS), (("broker", "start"), broker.OPTIONS)):
        text = strom(*words, "--help").output
        for option in options:
            assert option.flags[0] in text
            assert option.help.split()[0] in text


def test_a_wrong_option_is_explained(strom):
    result = strom("up", "--prot", "1")
    assert result.exit_code == 2
    assert "--port" in result.stderr


def test_a_port_has_its_bounds(strom):
    result = strom("up", "--http-port", "65536")
    assert result.exit_code == 2
    assert "65535" in result.stderr


def test_an_override_must_have_a_value(strom):
    result = strom("up", "--override", "novalue")
    assert result.exit_code == 2
    assert "novalue" in result.stderr


def test_a_settings_file_must_be_there(strom, tmp_path):
    result = strom("broker", "start", "--config", str(tmp_path / "none"))
    assert result.exit_code == 1
    assert "No such file" in result.stderr


def test_starting_a_broker_imports_no_client_and_no_typer():
    """Both would take longer to import than the broker takes to start."""
    code = (
        "import sys; from strom.cli.main import run_lean; import strom.cli.up, strom.cli.broker;"
        "print([name for name in ('typer', 'rich', 'confluent_kafka', 'argparse')"
        " if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
