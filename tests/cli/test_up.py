"""Brokers started from the command line, as processes."""

import contextlib
import json
import os
import resource
import select
import signal
import socket
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from tests.broker.api.conftest import create, produce
from tests.conformance.batches import batch
from tests.conformance.raw import Raw

pytestmark = pytest.mark.slow

STOP_SECONDS_MAX = 60
#: How many a system may allow where somebody was thrifty.
FEW_FILES = 256


def ready(process):
    """Return the address that the broker says it is ready at."""
    line = process.stdout.readline()
    assert line.startswith("ready "), process.stderr.read()
    return line.split()[1]


def stop(process, number=signal.SIGTERM):
    process.send_signal(number)
    process.communicate(timeout=STOP_SECONDS_MAX)
    return process.returncode


def test_one_command_is_a_broker(process, strom, tmp_path):
    """Data is still there after a restart."""
    directory = tmp_path / "data"
    broker = process("up", "--port", "0", "--dir", str(directory))
    bootstrap = ready(broker)
    assert strom("produce", "flugdaten", "Liftoff", "-b", bootstrap).exit_code == 0
    assert stop(broker) == 0

    broker = process("up", "--port", "0", "--dir", str(directory))
    arguments = ("consume", "flugdaten", "--from-beginning", "-u", "end", "-b", ready(broker))
    assert strom(*arguments).stdout == "Liftoff\n"
    assert stop(broker, signal.SIGINT) == 0
    assert strom("log", "verify", str(directory)).stdout == "Everything is as it should be.\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_throw_away_broker_leaves_nothing_behind(process, strom, number):
    """SIGHUP is what comes when its terminal is closed."""
    broker = process("up", "--port", "0", "--memory")
    bootstrap = ready(broker)
    made = memory_directory(broker.pid)
    assert strom("produce", "flugdaten", "Liftoff", "-b", bootstrap).exit_code == 0
    assert (made / "flugdaten-0").is_dir()
    assert stop(broker, number) == 0
    assert not made.exists()


def test_a_throw_away_broker_leaves_nothing_behind_when_it_is_ended_at_once(process):
    broker = process("up", "--port", "0", "--memory")
    with Raw(ready(broker)) as deaf:
        made = memory_directory(broker.pid)
        # Answers that nobody reads are something to wait for at a stop.
        deaf.send_bytes(deaf.encode("api_versions", 4, {}) * 20_000)
        broker.send_signal(signal.SIGINT)
        while "Stopping" not in broker.stderr.readline():
            assert broker.poll() is None
        assert stop(broker, signal.SIGINT) == 130
    assert not made.exists()


def test_a_broker_that_was_told_to_outlive_its_terminal_does(process, strom):
    """As `nohup strom up &` asks for."""
    broker = process("up", "--port", "0", "--memory", preexec_fn=ignore_hangups)
    bootstrap = ready(broker)
    broker.send_signal(signal.SIGHUP)
    assert strom("produce", "flugdaten", "Liftoff", "-b", bootstrap).exit_code == 0
    assert stop(broker) == 0


def test_a_flood_of_connections_leaves_files_to_those_who_are_there(process):
    """BRK-14: a connection takes a descriptor, and so does what a broker opens for its clients."""
    broker = process("up", "--port", "0", "--memory", preexec_fn=allow_few_files)
    bootstrap = ready(broker)
    with Raw(bootstrap) as raw, contextlib.ExitStack() as flood:
        for _ in range(2 * FEW_FILES):
            newcomer = flood.enter_context(socket.socket())
            newcomer.setblocking(False)
            newcomer.connect_ex(("127.0.0.1", int(bootstrap.split(":")[1])))
        line = broker.stderr.readline()
        while "connections at most" not in line:
            assert line, "the broker has ended"
            line = broker.stderr.readline()
        create(raw, "flugdaten", partitions=20)
        produce(raw, "flugdaten", batch([b"Liftoff"]))
    assert stop(broker) == 0


def allow_few_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (FEW_FILES, FEW_FILES))


def ignore_hangups():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def memory_directory(pid):
    """Where a process has files in memory that are open: those of others do not count."""
    opened = [os.readlink(each) for each in Path(f"/proc/{pid}/fd").iterdir()]
    root = Path("/dev/shm")
    (made,) = {root / Path(each).relative_to(root).parts[0] for each in opened if in_memory(each)}
    return made


def in_memory(path):
    return path.startswith("/dev/shm/strom-")


def test_a_broker_takes_its_settings_from_a_file(process, strom, tmp_path):
    config = tmp_path / "server.properties"
    config.write_text(
        "node.id=5\nlisteners=PLAINTEXT://127.0.0.1:0\n"
        f"log.dirs={tmp_path}/data\nnum.partitions=2\n"
    )
    broker = process("broker", "start", "--config", str(config), "--override", "num.partitions=4")
    bootstrap = ready(broker)
    strom("topic", "create", "flugdaten", "-b", bootstrap)
    described = strom("topic", "describe", "flugdaten", "-b", bootstrap).stdout
    assert "PartitionCount: 4" in described
    assert "Leader: 5" in described
    assert stop(broker) == 0


def test_metrics_are_where_the_broker_says(process):
    """MON-01."""
    broker = process("up", "--port", "0", "--memory", "--http-port", "0")
    ready(broker)
    word, url = broker.stdout.readline().split()
    assert word == "metrics"
    with urlopen(url) as page:
        assert b"kafka_server_replicamanager_partitioncount 0.0" in page.read()
    with urlopen(Request(url, method="HEAD")) as head:
        assert int(head.headers["Content-Length"]) > 0
        assert head.read() == b""
    with urlopen(url.replace("metrics", "healthz")) as health:
        assert health.read() == b"ok\n"
    assert stop(broker) == 0


def test_a_directory_that_does_not_say_whose_it_is_is_left_alone(process, tmp_path):
    (tmp_path / "meta.properties").write_text("version=one\n")
    broker = process("up", "--port", "0", "--dir", str(tmp_path))
    _, err = broker.communicate(timeout=STOP_SECONDS_MAX)
    assert broker.returncode == 1
    assert err.startswith(f"strom: cannot use {tmp_path}: meta.properties ")
    assert err.count("\n") == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_demo_that_is_stopped_takes_its_broker_with_it(process, tmp_path, number):
    demo = process("demo", env={**os.environ, "TMPDIR": str(tmp_path)})
    demo.stdout.readline()
    bootstrap = demo.stdout.readline().split()[-1].rstrip(".")
    assert stop(demo, number) == 128 + number
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(bootstrap.split(":"))


def test_a_bad_setting_is_one_line_and_touches_nothing(process, tmp_path):
    directory = tmp_path / "data"
    broker = process("up", "--port", "0", "--dir", str(directory), "-o", "num.partitions=none")
    out, err = broker.communicate(timeout=STOP_SECONDS_MAX)
    assert broker.returncode == 1
    assert out == ""
    assert err.count("\n") == 1
    assert "num.partitions" in err
    assert not directory.exists()


def test_a_directory_with_a_comma_is_one_line_and_touches_nothing(process, tmp_path):
    """`log.dirs` would take it for two."""
    broker = process("up", "--port", "0", "--dir", str(tmp_path / "a,b"))
    out, err = broker.communicate(timeout=STOP_SECONDS_MAX)
    assert (broker.returncode, out) == (2, "")
    assert err == "strom: --dir names one directory, which has no comma in its name\n"
    assert list(tmp_path.iterdir()) == []


def test_a_port_in_use_is_one_line(process, bootstrap, tmp_path):
    port = bootstrap.rpartition(":")[2]
    broker = process("up", "--port", port, "--dir", str(tmp_path / "data"))
    out, err = broker.communicate(timeout=STOP_SECONDS_MAX)
    assert (broker.returncode, out) == (1, "")
    assert port in err.splitlines()[-1]
    assert "Traceback" not in err


def test_the_demo_brings_its_own_broker(strom):
    """USE-02."""
    result = strom("demo", "--seconds", "1")
    assert result.exit_code == 0, result.output
    assert "A broker started in" in result.stdout
    assert "flugdaten-0/00000000000000000000.log" in result.stdout
    assert "strom up" in result.stdout


def start_behind(process, config, log):
    """Start a broker in the background; return what the command said and its exit code."""
    started = process("broker", "start", "--daemon", "-c", str(config), "--log-file", str(log))
    out, errors = started.communicate(timeout=STOP_SECONDS_MAX)
    return started.returncode, out, errors


def test_programs_are_told_in_json_that_it_is_ready(process, strom, tmp_path):
    config = tmp_path / "server.properties"
    config.write_text(f"log.dirs={tmp_path / 'data'}\nlisteners=PLAINTEXT://127.0.0.1:0\n")
    for words in (
        ("up", "--port", "0", "--dir", str(tmp_path / "up"), "--http-port", "0"),
        ("broker", "start", "-c", str(config)),
    ):
        broker = process(*words, "--json")
        told = json.loads(broker.stdout.readline())
        assert strom("topic", "list", "-b", told["ready"]).exit_code == 0
        if "--http-port" in words:
            with urlopen(told["metrics"]) as page:
                assert page.status == 200
        else:
            assert told["metrics"] is None
        assert stop(broker) == 0


def test_a_broker_goes_on_in_the_background(process, strom, tmp_path):
    """BRK-20: the command returns once the broker serves, and says how to stop it."""
    config, log = tmp_path / "server.properties", tmp_path / "broker.log"
    config.write_text(f"log.dirs={tmp_path / 'data'}\nlisteners=PLAINTEXT://127.0.0.1:0\n")
    code, out, errors = start_behind(process, config, log)
    assert code == 0, errors
    bootstrap, pid = out.split()[1], int(out.split()[3].rstrip(","))
    behind = os.pidfd_open(pid)
    try:
        assert strom("produce", "flugdaten", "Liftoff", "-b", bootstrap).exit_code == 0
        os.kill(pid, signal.SIGTERM)
        assert select.select([behind], [], [], STOP_SECONDS_MAX)[0], "it did not stop"
    finally:
        os.close(behind)
    assert "Stopping" in log.read_text()


def test_a_log_that_cannot_be_written_is_one_line(process, tmp_path):
    config, log = tmp_path / "server.properties", tmp_path / "missing" / "broker.log"
    config.write_text(f"log.dirs={tmp_path / 'data'}\nlisteners=PLAINTEXT://127.0.0.1:0\n")
    code, out, errors = start_behind(process, config, log)
    assert (code, out) == (1, "")
    assert errors == (
        f"strom: cannot write {log}: No such file or directory; name another with --log-file\n"
    )


def test_a_broker_that_cannot_start_in_the_background_says_where_to_look(process, tmp_path):
    config, log = tmp_path / "server.properties", tmp_path / "broker.log"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        config.write_text(f"log.dirs={tmp_path}/data\nlisteners=PLAINTEXT://127.0.0.1:{port}\n")
        code, _, errors = start_behind(process, config, log)
    assert code == 1
    assert str(log) in errors
    assert "cannot listen at" in log.read_text()
    assert not (tmp_path / "data").exists()


def test_a_bad_setting_is_told_before_anything_is_started_in_the_background(process, tmp_path):
    config, log = tmp_path / "server.properties", tmp_path / "broker.log"
    config.write_text("num.partitions=many\n")
    code, out, errors = start_behind(process, config, log)
    assert (code, out) == (1, "")
    assert errors.count("\n") == 1
    assert "num.partitions" in errors
    assert not log.exists()


def test_a_port_of_the_metrics_in_use_is_one_line_and_touches_nothing(process, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        data = tmp_path / "data"
        broker = process("up", "--port", "0", "--dir", str(data), "--http-port", port)
        out, err = broker.communicate(timeout=STOP_SECONDS_MAX)
    assert (broker.returncode, out) == (1, "")
    assert err == (
        f"strom: cannot serve metrics at port {port} of 127.0.0.1: Address already in use; choose "
        "another strom.http.port, or port -1 for none\n"
    )
    assert not data.exists()
