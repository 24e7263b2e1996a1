"""`strom broker start`: a broker with the settings of a `server.properties` file."""

from strom.cli.failure import Failure
from strom.cli.lean import Command, Option, Values
from strom.cli.properties_file import read_properties_file
from strom.cli.up import announcer, overrides

OPTIONS = (
    Option(
        "config",
        ("--config", "-c"),
        str,
        None,
        "File with the broker's settings, in the form of Kafka's server.properties.",
        "FILE",
        required=True,
    ),
    Option(
        "override",
        ("--override", "-o"),
        list,
        [],
        "Setting that goes before the file's; may be repeated.",
        "KEY=VALUE",
    ),
    Option("daemon", ("--daemon", "-daemon"), bool, False, "Go on in the background (BRK-20)."),
    Option(
        "log_file",
        ("--log-file",),
        str,
        "strom-broker.log",
        "Where a broker in the background writes its log.",
        "FILE",
    ),
    Option("json", ("--json",), bool, False, "Say that it is ready in one line of JSON."),
)


def start(values: Values) -> int:
    """Run a broker until it is told to stop, here or in the background."""
    overridden = overrides(values["override"])
    settings = {**read_properties_file(str(values["config"])), **overridden}
    if values["daemon"]:
        check(settings)
        return start_in_background(values)
    from strom.broker.process import run

    return run(settings, on_ready=announcer(values))


def check(settings: dict[str, str]) -> None:
    """Say here what is wrong with the settings, not in the log of a broker that never was."""
    from strom.metadata.settings.definition import SettingsError
    from strom.metadata.settings.load import load

    try:
        load(settings)
    except SettingsError as error:
        raise Failure(str(error)) from None


def start_in_background(values: Values) -> int:
    """Start the same command without `--daemon`; return once it serves, or has failed to."""
    import json
    import subprocess
    import sys

    command = [sys.executable, "-m", "strom", "broker", "start", "--json"]
    command += ["--config", str(values["config"])]
    given = values["override"]
    assert isinstance(given, list)
    for each in given:
        command += ["--override", each]
    log_file = str(values["log_file"])
    try:
        log = open(log_file, "ab")  # noqa: SIM115 - closed below, once it is known to be there
    except OSError as error:
        raise Failure(
            f"cannot write {log_file}: {error.strerror}; name another with --log-file"
        ) from None
    with log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
    assert process.stdout is not None
    with process.stdout as said:
        line = said.readline()
    if not line:
        raise Failure(f"the broker did not start: see {log_file}")
    ready, pid = json.loads(line), process.pid
    if values["json"]:
        print(json.dumps({**ready, "pid": pid, "log_file": log_file}), flush=True)
    else:
        print(f"ready {ready['ready']}")
        print(f"pid {pid}, log in {log_file}; kill {pid} stops it", flush=True)
    return 0


COMMAND = Command(
    "Start a broker with the settings of a file, in the foreground or with --daemon behind it.",
    (
        "strom broker start --config server.properties",
        "strom broker start -c server.properties -o node.id=2 -o log.dirs=/data/2",
        "strom broker start --daemon -c server.properties",
        "strom broker start --daemon --json -c server.properties",
    ),
    OPTIONS,
    start,
)
