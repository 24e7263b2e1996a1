"""The whole project in a directory that stays: real parts, supervised, killed, moved (PRJ-09)."""

import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from examples.final_project import counting
from examples.final_project.database.addresses import READER, acting_as, of_place
from examples.final_project.deployment.parts import PARTS
from examples.final_project.deployment.release import LEFT_OUT, current, name_of
from examples.final_project.deployment.release import PARTS as CODE
from examples.final_project.deployment.supervision import Supervisor
from examples.final_project.part import holder
from examples.final_project.place import Place
from examples.final_project.processing.queries import QUERIES
from examples.final_project.scraper import topics
from examples.final_project.settings import load
from tests import nodes
from tests.patience import until
from tests.spark import starting

#: Spark starts, and a database, on a machine with others' work.
SPARK_SECONDS_MAX = 120

pytestmark = [pytest.mark.slow, pytest.mark.java, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
NAMES = [each.name for each in PARTS]
SECONDS_MAX = 400


class Deployed:
    """A deployment in a directory of its own, operated as a user does."""

    def __init__(self):
        # Who runs PostgreSQL for root has to reach it.
        directory = nodes.new_directory("deployment")
        directory.chmod(0o755)
        self.place = Place(directory)
        port = nodes.free_port(1, 2)
        self.place.settings.write_text(
            f"[broker]\nport = {port}\nhttp_port = {port + 1}\n[site]\nport = {port + 2}\n"
        )
        self.settings = load(self.place.settings, {})
        self.supervisor = Supervisor(self.place)

    @property
    def url(self):
        return of_place(self.place, self.settings)

    def do(self, *words, code=None):
        """What a command says, and its exit code."""
        command, more = [ROOT / "tools" / "project"], {}
        if code is not None:
            command = [sys.executable, "-m", "examples.final_project.deployment"]
            more = {"PYTHONPATH": f"{code}:{code}/src"}
        done = subprocess.run(
            [*command, *words],
            env=starting.environment(PROJECT_DIR=str(self.place.directory), **more),
            cwd=code or ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
        return done.stdout, done.returncode

    def done(self, *words, code=None):
        """What a command says that does what it should."""
        said, exit_code = self.do(*words, code=code)
        assert exit_code == 0, said
        return said

    def ask(self, query):
        with psycopg.connect(self.url, autocommit=True) as connection:
            answer = connection.execute(query)
            return answer.fetchall() if answer.description else []

    def processes(self):
        """All processes that have something to do with the directory, but for zombies."""
        return [int(each.name) for each in Path("/proc").iterdir() if self._is_ours(each)]

    def _is_ours(self, process):
        found = b""
        with suppress(OSError):
            if process.name.isdigit() and int(process.name) != os.getpid():
                found = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
                found += os.fsencode((process / "cwd").readlink())
        return os.fsencode(self.place.directory) in found

    def kill_all(self):
        for each in self.processes():
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        until(
            lambda: not self.processes(),
            told=lambda: "something outlives SIGKILL",
            seconds=SPARK_SECONDS_MAX,
        )

    def agreed(self):
        """Pause the scraper, wait until all was stored; what was sent and what is stored."""
        self.supervisor.stop("scraper")
        reader = acting_as(self.url, READER)
        bootstrap = self.settings.broker.bootstrap
        admin = topics.client(bootstrap)

        def all_there():
            lags = [counting.lag(admin, name) for name in QUERIES]
            found = counting.agreements(bootstrap, reader)
            return found if not any(n != 0 for n in lags) and all(e.holds for e in found) else None

        def seen():
            return counting.agreements(bootstrap, reader)

        found = until(
            all_there,
            told=lambda: f"{seen()} {self.do('logs', 'processing')[0]}",
            seconds=SPARK_SECONDS_MAX,
        )
        return {each.what: each.stored for each in found}

    def remove(self):
        self.do("down")
        self.kill_all()
        shutil.rmtree(self.place.directory, ignore_errors=True)


@pytest.fixture
def deploy():
    """A maker of deployments."""
    if reason := nodes.java_missing():
        pytest.skip(reason)
    made = []

    def make():
        made.append(Deployed())
        return made[-1]

    yield make
    for each in made:
        each.remove()


def measurements(deployed):
    return deployed.ask("SELECT count(*) FROM flights.telemetry")[0][0]


def test_prj_09_up_status_killed_up_again_and_down(deploy):
    deployed = deploy()
    assert deployed.do("status")[1] == 1
    said = deployed.done("up")
    assert said.splitlines()[-1] == f"all is well in {deployed.place.directory}"
    assert [name for name in NAMES if f"{name} is well" in said] == NAMES
    assert oct(deployed.place.password.stat().st_mode)[-3:] == "600"
    holders = [holder(deployed.place, name) for name in NAMES]
    deployed.done("up")
    assert [holder(deployed.place, name) for name in NAMES] == holders
    assert re.search(r"^flow +well$", deployed.done("status"), re.MULTILINE)
    assert "ready" in deployed.done("logs", "broker")
    assert deployed.do("logs", "brokr")[1] == 1

    # One part is started again by the supervisor.
    os.kill(holder(deployed.place, "scraper"), signal.SIGKILL)
    until(
        lambda: holder(deployed.place, "scraper"),
        told=lambda: "it is not started again",
        seconds=SPARK_SECONDS_MAX,
    )

    until(
        lambda: measurements(deployed),
        told=lambda: deployed.do("logs", "processing")[0],
        seconds=SPARK_SECONDS_MAX,
    )
    deployed.kill_all()
    assert deployed.do("status")[1] == 1
    deployed.done("up")

    # A supervisor alone is killed: what it leaves is ended, and all goes on.
    os.kill(int((deployed.place.run / "supervisord.pid").read_text()), signal.SIGKILL)
    until(
        lambda: not deployed.supervisor.runs(),
        told=lambda: "it still answers",
        seconds=SPARK_SECONDS_MAX,
    )
    assert "was left without a supervisor" in deployed.done("up")
    stored = deployed.agreed()
    assert stored["measurements, stored or rejected with a reason"] > 0

    found_by_drift(deployed)
    assert deployed.done("down").endswith(f"nothing runs in {deployed.place.directory}\n")
    assert deployed.processes() == []
    assert deployed.do("status")[1] == 1


def found_by_drift(deployed):
    """What was changed by hand is found, each by its name."""
    assert deployed.done("drift") == "all is as in the repository\n"
    changed = ConfigResource(
        ResourceType.TOPIC,
        "flights",
        incremental_configs=[
            ConfigEntry("retention.ms", "1", incremental_operation=AlterConfigOpType.SET)
        ],
    )
    admin = topics.client(deployed.settings.broker.bootstrap)
    for answer in admin.incremental_alter_configs([changed]).values():
        answer.result()
    deployed.ask("ALTER SYSTEM SET work_mem = '1MB'")
    deployed.ask("SELECT pg_reload_conf()")
    deployed.ask("ALTER TABLE flights.flight ADD COLUMN mine text")
    deployed.ask("DROP INDEX flights.anomaly_open")
    deployed.ask("ALTER ROLE flights_reader SET statement_timeout = 0")
    said, code = deployed.do("drift")
    assert code == 1
    assert said.splitlines() == [
        "topic flights: retention.ms is 1, not 604800000",
        "database: work_mem is 1MB, not 16MB",
        "database: column flight.mine is new",
        "database: index anomaly_open is missing",
        "database: role flights_reader differs",
        "5 differences",
    ]
    # What the code says of topics is in force again with the next start.
    deployed.done("prepare")
    assert "topic" not in deployed.do("drift")[0]


@pytest.fixture
def copied(tmp_path):
    """A maker of copies of the code, each other than the repository's."""

    def copy(name, **changed):
        made = tmp_path / name
        for each in CODE:
            source, target = ROOT / each, made / each
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, ignore=LEFT_OUT)
            else:
                shutil.copyfile(source, target)
        for file, text in changed.items():
            made.joinpath("examples/final_project", file).write_text(text)
        return made

    return copy


def test_prj_09_an_upgrade_a_way_back_and_a_restore_elsewhere(deploy, copied):
    deployed = deploy()
    old = copied("old", **{"deployment/release_notes.txt": "older"})
    newer = "database/migrations/9999_newer.sql"
    good = copied("good", **{newer: "ALTER TABLE flights.flight ADD COLUMN newer text;"})
    bad = copied(
        "bad",
        **{newer: "DROP TABLE flights.anomaly;", "scraper/__main__.py": "raise SystemExit(1)"},
    )
    deployed.done("up", code=old)
    until(
        lambda: measurements(deployed),
        told=lambda: deployed.do("logs", "processing")[0],
        seconds=SPARK_SECONDS_MAX,
    )
    assert deployed.done("upgrade", code=old).startswith("the repository is what runs")

    said, code = deployed.do("upgrade", "--within", "20", code=bad)
    assert code == 1, said
    assert "does not work: scraper: " in said
    assert current(deployed.place) == name_of(old)
    assert deployed.ask("SELECT count(*) FROM flights.anomaly")

    before = measurements(deployed)
    said = deployed.done("upgrade", code=good)
    assert current(deployed.place) == name_of(good)
    assert deployed.ask("SELECT newer FROM flights.flight LIMIT 1")
    assert measurements(deployed) >= before

    file = deployed.done("backup").splitlines()[-1]
    assert oct(Path(file).stat().st_mode)[-3:] == "600"
    assert "is running" in deployed.do("restore", file)[0]
    deployed.done("down")

    elsewhere = deploy()
    assert elsewhere.do("restore", __file__)[0].startswith(f"{__file__} is not a whole backup")
    elsewhere.done("restore", file, code=good)
    elsewhere.done("up", code=good)
    assert measurements(elsewhere) >= before
    stored = elsewhere.agreed()
    assert stored["measurements, stored or rejected with a reason"] >= before
