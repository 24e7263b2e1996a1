"""docs/cli.md is true: it names every command."""

from pathlib import Path

from typer.main import get_command

from strom.cli.app import app

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
