"""How commands declare their options: a dataclass per command, one field an option.

A field is annotated as typer wants a parameter annotated; `taking` shows typer the fields as if
they were the command's parameters, and the command gets one object. Classes inherit what
several commands share, so that an option means the same everywhere.
"""

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Annotated, Final, TypeVar, get_type_hints

import typer

from strom.cli.completion import topic_names
from strom.cli.failure import USED_WRONGLY, Failure, report, require_text
from strom.cli.lean import PORT_MAX, Command, Option

OptionsType = TypeVar("OptionsType")

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
#: Marks an option whose words may be bytes that are no text: `os.fsencode` gives them.
ANY_BYTES: Final = object()
#: What fits into the protocol's fields.
INT16_MAX, INT32_MAX = 2**15 - 1, 2**31 - 1

Topic = Annotated[
    str, typer.Argument(metavar="TOPIC", show_default=False, autocompletion=topic_names)
]
Topics = Annotated[
    list[str], typer.Argument(metavar="TOPIC", show_default=False, autocompletion=topic_names)
]
OptionalTopics = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TOPIC", show_default=False, autocompletion=topic_names, help="Default: all."
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    """Where the broker is, and how to talk to it."""

    bootstrap_server: Annotated[
        str,
        typer.Option(
            "--bootstrap-server",
            "-b",
            envvar="STROM_BOOTSTRAP",
            metavar="HOST:PORT,…",
            help="Any broker of the cluster.",
        ),
    ] = DEFAULT_BOOTSTRAP
    client_config: Annotated[
        list[str],
        typer.Option(
            "--client-config",
            "-X",
            metavar="KEY=VALUE",
            help="Client property; may be repeated.",
        ),
    ] = field(default_factory=list)
    client_config_file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="File of client properties, a line each: KEY=VALUE or KEY: VALUE."
        ),
        ANY_BYTES,
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions(ClientOptions):
    """Options of a client command that reports something."""

    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False


def taking(
    options: type[OptionsType],
) -> Callable[[Callable[[OptionsType], None]], Callable[..., None]]:
    """Let a function of one options object be a typer command; a Failure becomes one line."""
    of_text = texts_of(options)

    def decorate(run: Callable[[OptionsType], None]) -> Callable[..., None]:
        @functools.wraps(run)
        def command(**values: object) -> None:
            try:
                for name in of_text:
                    require_text(words_in(values[name]))
                run(options(**values))
            except Failure as failure:
                raise typer.Exit(report(failure)) from None

        return show_parameters(command, parameters_of(options))

    return decorate


def texts_of(options: type[object]) -> list[str]:
    """Return the names of the fields that hold text, if anything."""
    hints = get_type_hints(options, include_extras=True)
    return [
        name for name, hint in hints.items() if ANY_BYTES not in getattr(hint, "__metadata__", ())
    ]


def words_in(value: object) -> list[str]:
    """Return the texts that an option was given; paths are none."""
    if isinstance(value, list):
        return [each for each in value if isinstance(each, str)]
    return [value] if isinstance(value, str) else []


def parameters_of(options: type[object]) -> list[inspect.Parameter]:
    """Return the fields of an options class as parameters."""
    hints = get_type_hints(options, include_extras=True)
    return [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=default_of(each.default, each.default_factory),
            annotation=hints[each.name],
        )
        for each in fields(options)  # type: ignore[arg-type]
    ]


def default_of(default: object, factory: object) -> object:
    """Return the default that typer is to show; an empty list for a repeated option."""
    if callable(factory):
        return factory()
    return inspect.Parameter.empty if default is MISSING else default


def show_parameters(
    command: Callable[..., None], parameters: Sequence[inspect.Parameter]
) -> Callable[..., None]:
    """Make typer see these parameters."""
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    return command


def add_lean(app: typer.Typer, name: str, lean: Command) -> None:
    """Tell typer about a command that the lean path runs when nothing needs explaining."""

    def command(**values: object) -> None:
        try:
            code = lean.run(values)  # type: ignore[arg-type]
        except Failure as failure:
            code = report(failure)
        raise typer.Exit(code)

    shown = show_parameters(command, [lean_parameter(option) for option in lean.options])
    app.command(name, help=lean.help, epilog=examples(*lean.examples))(shown)


def lean_parameter(option: Option) -> inspect.Parameter:
    """Return a lean option as a typer parameter."""
    is_port = option.kind is int
    described = typer.Option(
        *option.flags,
        help=option.help,
        metavar=option.metavar,
        min=0 if is_port else None,
        max=PORT_MAX if is_port else None,
    )
    kind: object = list[str] if option.kind is list else option.kind
    if is_port and option.default is None:
        kind = int | None
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if option.required else option.default,
        annotation=Annotated[kind, described],
    )


def key_values(texts: Sequence[str]) -> dict[str, str]:
    """Read KEY=VALUE texts; a value may hold equals signs and commas."""
    read = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator or not key.strip():
            raise Failure(f"expected KEY=VALUE, not {text!r}", USED_WRONGLY)
        read[key.strip()] = value.strip()
    return read


def examples(*lines: str) -> str:
    """Return an epilog of examples, as typer's markdown wants it."""
    return "Examples:\n\n" + "\n\n".join(f"    {line}" for line in lines)


def noun(help_text: str) -> typer.Typer:
    """Return the app of one noun; without a verb it shows its help."""
    return typer.Typer(help=help_text, no_args_is_help=True, rich_markup_mode="rich")
