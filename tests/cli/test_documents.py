"""docs/cli.md is true: it names every command; and each command's help shows how it is used."""

import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from strom.cli.app import app

#: Every command by its words, with what typer knows of it.
COMMANDS = {
    " ".join(["strom", name, *verb]): command
    for name, noun in get_command(app).commands.items()
    for verb, command in [
        ([verb], command) for verb, command in getattr(noun, "commands", {}).items()
    ]
    or [([], noun)]
}
PAGE = (Path(__file__).parent.parent.parent / "docs" / "cli.md").read_text()


def test_every_command_is_named():
    nouns = get_command(app).commands
    missing = [name for name in nouns if f"`strom {name}" not in PAGE]
    missing += [
        f"{name} {verb}"
        for name, noun in nouns.items()
        for verb in getattr(noun, "commands", ())
        if f"`{verb}`" not in PAGE and f"strom {name} {verb}" not in PAGE
    ]
    assert not missing


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_has_help_with_examples(words):
    command = COMMANDS[words]
    assert command.help
    head, *lines = [line.strip() for line in (command.epilog or "").splitlines() if line.strip()]
    assert head == "Examples:"
    assert any(words in line for line in lines)


@pytest.mark.parametrize("words", sorted(set(COMMANDS) - {"strom demo"}))
def test_every_command_speaks_json(words):
    """All but the demo, which is to be looked at."""
    assert "--json" in [name for each in COMMANDS[words].params for name in each.opts]


EXAMPLES = sorted(
    {
        line.strip()
        for command in COMMANDS.values()
        for line in (command.epilog or "").splitlines()[1:]
        if line.strip()
    }
)


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_can_be_typed(example):
    """As a shell reads it: each `strom` in a pipe has a command and options that there are."""
    asked_for = re.compile(r"\$\(([^)]*)\)")
    for line in (asked_for.sub("result", example), *asked_for.findall(example)):
        words = list(shlex.shlex(line, posix=True, punctuation_chars=True))
        assert not set(words) & {"(", ")", ";", "&", "<", ">"}, "a shell would stumble"
        for name, *arguments in (shlex.split(part, comments=True) for part in line.split(" | ")):
            if name == "strom":
                check_command(arguments)


def check_command(arguments):
    """Have the arguments read, and nothing run."""
    group = get_command(app)
    parent = None
    while hasattr(group, "commands") and group.commands:
        parent = group.make_context("strom", arguments[:1], parent, resilient_parsing=True)
        group, arguments = group.commands[arguments[0]], arguments[1:]
    group.make_context("strom", arguments, parent)
