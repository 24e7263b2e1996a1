"""docs/cli.md is true: it names every command; and each command's help shows how it is used."""

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
