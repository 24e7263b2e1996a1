"""A deployment's operator: what `make project-up` and its like run.

    python -m examples.final_project.deployment COMMAND [--dir DIR]

Exit codes: 0 done, or all is well; 1 not; 2 used wrongly.
"""

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
from confluent_kafka import KafkaException

from examples.final_project.database.migrate import ChangedError
from examples.final_project.deployment import operation
from examples.final_project.deployment.backup import back_up
from examples.final_project.deployment.backup import restore as restored
from examples.final_project.deployment.drift import drift as drifted
from examples.final_project.deployment.health import CHECKS, ailment
from examples.final_project.deployment.operation import (
    Deployment,
    OperationError,
    deployment_at,
    say,
)
from examples.final_project.deployment.supervision import NotSupervisedError
from examples.final_project.deployment.upgrade import SECONDS_MAX
from examples.final_project.deployment.upgrade import upgrade as upgraded
from examples.final_project.part import FAILED, USED_WRONGLY, held
from examples.final_project.place import DEFAULT, DIRECTORY, PlaceError, place_at
from examples.final_project.settings import SettingsError

REFUSALS = (
    OperationError,
    NotSupervisedError,
    ChangedError,
    psycopg.Error,
    KafkaException,
    OSError,
)


def up(at: Deployment, options: argparse.Namespace) -> int:
    """Start what does not run; fail if a part is not well in time."""
    ailing = operation.up(at, options.within)
    for name, why in ailing.items():
        say(f"{name}: {why}")
    say(f"{'NOT all is well' if ailing else 'all is well'} in {at.place.directory}")
    return FAILED if ailing else 0


def status(at: Deployment, _options: argparse.Namespace) -> int:
    """Show parts and flow."""
    return 0 if operation.status(at) else FAILED


def logs(at: Deployment, options: argparse.Namespace) -> int:
    """Show the last lines of the logs."""
    operation.logs(at, options.parts)
    return 0


def down(at: Deployment, _options: argparse.Namespace) -> int:
    """Stop everything."""
    operation.down(at)
    say(f"nothing runs in {at.place.directory}")
    return 0


def backup(at: Deployment, _options: argparse.Namespace) -> int:
    """Write a backup; the last line is its file."""
    say(str(back_up(at)))
    return 0


def restore(at: Deployment, options: argparse.Namespace) -> int:
    """Put a backup in the place of what is there; nothing may run."""
    restored(at, options.file.absolute())
    say(f"{options.file} is in {at.place.directory}: make project-up")
    return 0


def upgrade(at: Deployment, options: argparse.Namespace) -> int:
    """Run the repository's code instead of the release that runs; go back if it does not work."""
    environment = operation.environment_of(at.place)
    return 0 if upgraded(at, options.within, environment) else FAILED


def drift(at: Deployment, _options: argparse.Namespace) -> int:
    """Show what is in force and is other than in the repository; fail if anything is."""
    found = list(drifted(at))
    for line in found:
        say(line)
    say(f"{len(found)} differences" if found else "all is as in the repository")
    return FAILED if found else 0


def prepare(at: Deployment, _options: argparse.Namespace) -> int:
    """Make topics and tables, for those who have a supervisor of their own."""
    operation.await_early(at, EARLY_SECONDS_MAX)
    operation.prepare(at.place, at.settings)
    return 0


def health(at: Deployment, options: argparse.Namespace) -> int:
    """Say whether one part is well, for those who have a supervisor of their own."""
    found = ailment(options.part, at.place, at.settings)
    say(found or "well")
    return FAILED if found else 0


#: As long as a service manager may take to start broker and database.
EARLY_SECONDS_MAX = 90
#: Those that change something, one at a time.
EXCLUSIVE = (up, down, prepare, backup, restore)


def parser() -> argparse.ArgumentParser:
    """Return what is understood."""
    made = argparse.ArgumentParser(
        prog="python -m examples.final_project.deployment", description=__doc__.splitlines()[0]
    )
    made.add_argument("--dir", help=f"the deployment; else ${DIRECTORY}, else {DEFAULT}")
    commands = made.add_subparsers(required=True, metavar="COMMAND")

    def command(does: Callable[[Deployment, argparse.Namespace], int]) -> argparse.ArgumentParser:
        added = commands.add_parser(does.__name__, help=does.__doc__)
        added.set_defaults(does=does)
        return added

    within = command(up)
    within.add_argument("--within", type=float, default=operation.UP_SECONDS_MAX, metavar="SECONDS")
    command(status)
    command(logs).add_argument("parts", nargs="*", metavar="PART")
    command(down)
    command(backup)
    command(restore).add_argument("file", type=Path, metavar="FILE")
    within = command(upgrade)
    within.add_argument("--within", type=float, default=SECONDS_MAX, metavar="SECONDS")
    command(drift)
    command(prepare)
    command(health).add_argument("part", choices=list(CHECKS))
    return made


def main() -> int:
    """Do what is asked."""
    options = parser().parse_args()
    try:
        place = place_at(options.dir)
        at = deployment_at(place, os.environ)
        if options.does in EXCLUSIVE:
            place.run.mkdir(parents=True, exist_ok=True)
            held(place, "operation")
        elif options.does is upgrade:
            held(place, "upgrade")
        done: int = options.does(at, options)
    except (SettingsError, PlaceError) as error:
        say(str(error))
        return USED_WRONGLY
    except REFUSALS as error:
        say(" ".join(str(error).split()))
        return FAILED
    return done


if __name__ == "__main__":
    sys.exit(main())
