"""The two brokers that are compared, each run as its users run it."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import confluent_kafka

from bench import jvm
from tests import nodes

ROOT = Path(__file__).parent.parent
BUILD = ROOT / ".setup"
VENV = BUILD / "bench-venv"
STOP_SECONDS = 60
SYSTEM_PYTHON = "/usr/bin/python3"
#: What both are told: the files of a topic that is deleted go at once, so that the next load finds
#: the memory that they took. A virtual machine gives memory back to its host that is free for some
#: seconds, and to get it again took four times as long as to write into it.
SHARED = {"log.segment.delete.delay.ms": 0}


class Strom:
    """Strom from a bare install in an environment of its own."""

    name = "Strom"

    def __init__(self, settings):
        self.home = Path(tempfile.mkdtemp(prefix="strom-bench-"))
        self.port = nodes.free_port()
        self.bootstrap = f"127.0.0.1:{self.port}"
        self.data = self.home / "data"
        self.config = self.home / "server.properties"
        own = {
            "node.id": 1,
            "listeners": f"PLAINTEXT://{self.bootstrap}",
            "log.dirs": self.data,
            **SHARED,
            **settings,
        }
        self.config.write_text("".join(f"{name}={value}\n" for name, value in own.items()))
        self.process = None

    @staticmethod
    def install():
        """Install what is checked out, without the extras of development."""
        python = VENV / "bin" / "python"
        subprocess.run([own_python(), "-m", "venv", "--clear", VENV], check=True)
        pip = [python, "-m", "pip"]
        held = ["-q", "-c", ROOT / "constraints.txt"]
        # Compiling takes minutes: only if something has changed.
        subprocess.run([ROOT / "tools" / "set-up", "compiled"], check=True)
        (wheel,) = (BUILD / "wheel").iterdir()
        subprocess.run([*pip, "install", *held, wheel], check=True)
        # Also over the same version.
        again = ["--no-deps", "--force-reinstall", wheel]
        subprocess.run([*pip, "install", *held, *again], check=True)

    def command(self):
        return [str(VENV / "bin" / "strom"), "broker", "start", "--config", str(self.config)]

    def start(self):
        with open(self.home / "broker.log", "ab") as log:
            self.process = subprocess.Popen(self.command(), stdout=subprocess.PIPE, stderr=log)
        for line in self.process.stdout:
            if line.startswith(b"ready"):
                return self
        raise SystemExit((self.home / "broker.log").read_text()[-2000:])

    @property
    def pid(self):
        return self.process.pid

    def held_bytes(self):
        """The memory that is the process's own: all of it, with what its allocator keeps."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("RssAnon:")[2].split()[0]) * 1024

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(STOP_SECONDS)
        self.process.stdout.close()
        self.process = None

    def remove(self):
        if self.process is not None:
            self.stop()
        shutil.rmtree(self.home, ignore_errors=True)


class Kafka:
    """Apache Kafka from Maven Central, with its defaults, on the same disk."""

    name = "Kafka"

    def __init__(self, settings):
        self.home = Path(tempfile.mkdtemp(prefix="strom-bench-"))
        self.data = self.home / "k" / "data-1"
        self.port = nodes.free_port(nodes.CONTROLLER_DISTANCE)
        self.bootstrap = f"127.0.0.1:{self.port}"
        pairs = (f"{name}={value}" for name, value in {**SHARED, **settings}.items())
        self.properties = [each for pair in pairs for each in ("--property", pair)]

    def peer(self, *arguments):
        command = [sys.executable, nodes.PEER, *arguments, "--dir", self.home / "k"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def command(self):
        return self.peer("command").rstrip("\n").split("\0")

    def start(self):
        self.peer("start", "--port", str(self.port), *self.properties)
        return self

    @property
    def pid(self):
        return int((self.home / "k" / "pids").read_text())

    def held_bytes(self):
        """What is alive of the heap, and nothing of what the JVM has besides."""
        return jvm.live_heap_bytes(self.pid)

    def stop(self):
        self.peer("stop")

    def remove(self):
        self.stop()
        shutil.rmtree(self.home, ignore_errors=True)


SIDES = (Strom, Kafka)


def own_python():
    """The Python that Strom runs on: the system's, if what is compiled for this one fits it.

    What is shipped is optimised by profile and linked at once, one that was built from its sources
    often is not; and Kafka runs on a Java that was shipped.
    """
    if not Path(SYSTEM_PYTHON).exists():
        return sys.executable
    asked = "import sys, ensurepip; print(sys.implementation.cache_tag)"
    done = subprocess.run([SYSTEM_PYTHON, "-c", asked], capture_output=True, text=True)
    fits = done.stdout.strip() == sys.implementation.cache_tag
    return SYSTEM_PYTHON if fits else sys.executable


def python_version():
    """The version, and whose it is if not the one that runs the bench."""
    python = own_python()
    asked = "import platform; print(platform.python_version())"
    done = subprocess.run([python, "-c", asked], check=True, capture_output=True, text=True)
    return done.stdout.strip() + (", the system's" if python == SYSTEM_PYTHON else "")


def versions():
    """What was compared, on what."""
    own = subprocess.run(
        ["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True
    )
    pom = (nodes.PEER.parent / "pom.xml").read_text()
    return {
        "Strom": own.stdout.strip(),
        "Apache Kafka": pom.partition("<kafka.version>")[2].partition("<")[0],
        "Java": java_version(),
        "Python": python_version(),
        "librdkafka": librdkafka_version(),
        "machine": machine(),
    }


def java_version():
    home = subprocess.run([sys.executable, nodes.PEER, "java"], capture_output=True, text=True)
    release = Path(home.stdout.strip(), "release").read_text()
    return release.partition('JAVA_VERSION="')[2].partition('"')[0]


def librdkafka_version():
    return confluent_kafka.libversion()[0]


def machine():
    """Processor, cores, memory and kernel; nothing that names the machine."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "?")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{model}, {os.cpu_count()} cores, {memory:.0f} GiB, Linux {os.uname().release}"
