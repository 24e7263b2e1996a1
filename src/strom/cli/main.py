"""Where the `strom` command begins.

`strom up` and `strom broker start` take a shorter way than the other commands: typer alone
takes longer to import than a broker takes to start. Their options are plain data (`lean`);
what is plainly right is read here, everything else (`--help`, a typing error, completion) goes
to typer, which was told the same options and knows how to explain them.
"""

import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module

from strom.cli.failure import ENDED_BY_SIGNAL, FAILED, FULL, Failure, report
from strom.cli.lean import Command, parse
from strom.cli.signals import Ended, unwinding

#: The commands that run a broker, and the module that holds each as `COMMAND`.
LEAN_COMMANDS = {("up",): "strom.cli.up", ("broker", "start"): "strom.cli.broker"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that the arguments name; return the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    open_streams()
    try:
        with unwinding():
            try:
                code = run_lean(arguments)
                return run_typer(arguments) if code is None else code
            finally:
                flush_output()
    except Failure as failure:
        return report(failure)
    except OSError as error:
        # What else a system refuses, commands explain where it happens.
        if error.errno not in FULL:
            raise
        discard_output()
        return report(Failure(f"cannot write: {error.strerror}"))
    except KeyboardInterrupt:
        return ENDED_BY_SIGNAL + signal.SIGINT
    except Ended as ended:
        return ended.exit_code


def open_streams() -> None:
    """Give standard streams that were closed (`>&-`, some schedulers) to the null device.

    Else the next socket would get the number of one, and whatever is printed.
    """
    # In the order of their numbers: each takes the lowest that is free.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - as long as the process


def flush_output() -> None:
    """Write what is still to be written: on the way out nobody could tell that it does not fit."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever was to read it has seen enough; typer ends so if it comes upon it.
        discard_output()
        raise SystemExit(FAILED) from None


def discard_output() -> None:
    """Let nobody try again, on the way out, to write what did not fit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def run_lean(arguments: Sequence[str]) -> int | None:
    """Run a command that must start fast; None if this is not one, or if typer must look at it."""
    for words, module in LEAN_COMMANDS.items():
        if tuple(arguments[: len(words)]) == words:
            command: Command = import_module(module).COMMAND
            values = parse(command.options, arguments[len(words) :])
            return None if values is None else command.run(values)
    return None


def run_typer(arguments: Sequence[str]) -> int:
    """Run any command; typer ends the process itself unless the command returns."""
    from strom.cli.app import app

    app(args=list(arguments), prog_name="strom")
    return 0
