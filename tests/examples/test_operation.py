"""What an operator is told before anything starts, and of a part that does not (PRJ-09)."""

import os
import socket
import subprocess
import sys
from configparser import ConfigParser

import pytest

from examples.final_project.deployment import release
from examples.final_project.deployment.operation import deployment_at
from examples.final_project.deployment.parts import PARTS
from examples.final_project.deployment.supervision import configuration
from examples.final_project.part import held, holder
from examples.final_project.place import Place
from examples.final_project.settings import Settings
from tests import nodes
from tests.examples.test_parts import SECONDS_MAX

pytestmark = pytest.mark.slow


def do(directory, *words):
    done = subprocess.run(
        [sys.executable, "-m", "examples.final_project.deployment", "--dir", directory, *words],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout, done.returncode


def write_ports(directory, port):
    place = Place(directory)
    place.settings.write_text(
        f"[broker]\nport = {port}\nhttp_port = {port + 1}\n[site]\nport = {port + 2}\n"
    )
    return place


def test_prj_09_a_port_that_is_taken_is_named_before_anything_starts(tmp_path):
    port = nodes.free_port(1, 2)
    place = write_ports(tmp_path, port)
    with socket.create_server(("127.0.0.1", port + 1)):
        said, code = do(tmp_path, "up")
    assert code == 1
    assert said == (
        f"[broker] http_port: 127.0.0.1:{port + 1}: Address already in use; "
        "name another in project.toml\n"
    )
    assert not deployment_at(place, {}).supervisor.runs()
    assert do(tmp_path, "status") == (f"nothing runs in {tmp_path}: make project-up\n", 1)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's PostgreSQL runs as somebody else")
def test_prj_09_a_part_that_does_not_start_is_named_with_its_reason(tmp_path):
    place = write_ports(tmp_path, nodes.free_port(1, 2))
    tmp_path.chmod(0o700)
    try:
        said, code = do(tmp_path, "up")
        assert code == 1
        [why] = [line for line in said.splitlines() if line.startswith("database: ")]
        assert "PostgreSQL does not run as root" in why
        assert do(tmp_path, "status")[1] == 1
    finally:
        said, code = do(tmp_path, "down")
    assert (said, code) == (f"nothing runs in {tmp_path}\n", 0)
    assert [each.name for each in PARTS if holder(place, each.name)] == []


def test_prj_09_what_runs_in_a_container_is_not_ended_from_outside(tmp_path):
    place = Place(tmp_path)
    place.run.mkdir()
    opened = held(place, "site")
    os.pwrite(opened, b"1", 0)
    os.ftruncate(opened, 1)
    assert do(tmp_path, "down") == ("site runs in a container: stop it there\n", 1)
    os.close(opened)


def test_prj_09_what_is_used_wrongly_is_told_in_one_line(tmp_path):
    (tmp_path / "project.toml").write_text("[site]\nport = 0\n")
    said, code = do(tmp_path, "status")
    assert (said.count("\n"), code) == (1, 2)
    (tmp_path / "project.toml").unlink()
    assert do(tmp_path, "restore", tmp_path / "none") == (
        f"{tmp_path}/none: there is no such backup\n",
        1,
    )
    assert do(tmp_path, "backup") == (f"there is nothing in {tmp_path} yet: make project-up\n", 1)
    assert do(tmp_path, "upgrade") == (f"nothing runs in {tmp_path}: make project-up\n", 1)


def test_prj_09_supervisord_is_told_of_every_part(tmp_path):
    directory = tmp_path / "10 % of it"
    found = ConfigParser(interpolation=None)
    found.read_string(configuration(Place(directory), Settings()))
    programs = [name for name in found if name.startswith("program:")]
    assert programs == [f"program:{each.name}" for each in PARTS]
    for each in PARTS:
        program = found[f"program:{each.name}"]
        assert program["stopsignal"] == each.stop_signal
        assert f"{tmp_path}/10 %% of it" in program["command"]
        assert program["autorestart"] == "true"


@pytest.fixture
def code(tmp_path):
    """Code that is small."""
    for each in release.PARTS:
        made = tmp_path / "code" / each
        made.parent.mkdir(parents=True, exist_ok=True)
        if not made.suffix:
            made.mkdir()
        (made if made.suffix else made / "a.py").write_text("1")
    return tmp_path / "code"


def test_prj_09_a_release_is_named_by_what_is_in_it_and_the_last_ones_stay(tmp_path, code):
    place = Place(tmp_path / "place")
    place.directory.mkdir()
    assert release.current(place) is None
    names = []
    for number in range(5):
        (code / "src/strom/a.py").write_text(str(number))
        names.append(release.install(place, code))
        release.switch(place, names[-1])
        assert release.current(place) == names[-1] == release.name_of(place.current.resolve())
    assert len(set(names)) == 5
    assert {each.name for each in place.releases.iterdir()} == set(names[-release.KEPT :])
    (code / "src/strom/__pycache__").mkdir()
    (code / "src/strom/__pycache__/a.pyc").write_text("")
    assert release.name_of(code) == names[-1]
