"""Brokers started from the command line, as processes."""

import signal
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

STOP_SECONDS_MAX = 30


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


def test_a_throw_away_broker_leaves_nothing_behind(process, strom):
    before = memory_directories()
    broker = process("up", "--port", "0", "--memory")
    bootstrap = ready(broker)
    (made,) = memory_directories() - before
    assert strom("produce", "flugdaten", "Liftoff", "-b", bootstrap).exit_code == 0
    assert (made / "flugdaten-0").is_dir()
    assert stop(broker) == 0
    assert not made.exists()


def memory_directories():
    return set(Path("/dev/shm").glob("strom-*"))


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


def test_a_bad_setting_is_one_line_and_touches_nothing(process, tmp_path):
    directory = tmp_path / "data"
    broker = process("up", "--port", "0", "--dir", str(directory), "-o", "num.partitions=none")
    out, err = broker.communicate(timeout=STOP_SECONDS_MAX)
    assert broker.returncode == 1
    assert out == ""
    assert err.count("\n") == 1
    assert "num.partitions" in err
    assert not directory.exists()


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
