"""Each part is a program that starts by itself, and says in one line why if it cannot (PRJ-09)."""

import json
import os
import subprocess
import sys
import urllib.request
from contextlib import suppress

import pytest

from examples.final_project import part
from examples.final_project.deployment.parts import PARTS, parts_of
from examples.final_project.place import Place
from examples.final_project.settings import load
from tests import nodes
from tests.patience import until

pytestmark = pytest.mark.slow

SECONDS_MAX = 60


def words(name, *arguments):
    return [sys.executable, "-m", f"examples.final_project.{name}", *map(str, arguments)]


def ended(name, *arguments, **environment):
    """What a part says, and its exit code."""
    done = subprocess.run(
        words(name, *arguments),
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    return done.stdout + done.stderr, done.returncode


def answers(address):
    with suppress(OSError), urllib.request.urlopen(address) as answer:
        return answer.status == 200


@pytest.mark.parametrize("name", [each.name for each in PARTS])
def test_prj_09_a_part_tells_how_it_is_used(name):
    said, code = ended(name, "--help")
    assert code == 0
    assert "project.toml" in said
    assert "STROM_PROJECT_" in said


@pytest.mark.parametrize("name", [each.name for each in PARTS])
def test_prj_09_a_wrong_setting_ends_a_part_with_one_line(name, tmp_path):
    (tmp_path / "project.toml").write_text("[site]\nport = 0\n")
    said, code = ended(name, "--dir", tmp_path)
    assert code == part.USED_WRONGLY
    assert said == f"{tmp_path}/project.toml: [site] port (its port): 0 is not a port, 1 to 65535\n"


def test_prj_09_the_site_serves_and_no_second_one_does(tmp_path):
    port = str(nodes.free_port())
    environment = {**os.environ, "STROM_PROJECT_SITE_PORT": port}
    command = words("site", "--dir", tmp_path)
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) as site:
        try:
            address = f"http://127.0.0.1:{port}/robots.txt"
            until(lambda: answers(address), told=lambda: "the site does not serve")
            assert part.holder(Place(tmp_path), "site") == site.pid
            said, code = ended("site", "--dir", tmp_path, STROM_PROJECT_SITE_PORT=port)
            assert (code, said) == (1, f"site runs already in {tmp_path}, as process {site.pid}\n")
            said, code = ended("site", "--dir", tmp_path / "x", STROM_PROJECT_SITE_PORT=port)
            assert code == 1
            assert said == f"the site cannot listen on 127.0.0.1:{port}: Address already in use\n"
        finally:
            site.terminate()
    assert site.returncode == 0
    assert part.holder(Place(tmp_path), "site") is None


def test_prj_09_without_what_it_needs_a_part_says_so_in_one_line(tmp_path):
    said, code = ended("processing", "--dir", tmp_path)
    assert code == 1
    assert said.count("\n") == 1
    assert "data/database/.s.PGSQL.5432" in said
    url = "postgresql://me:secret@127.0.0.1:1/x"
    said, code = ended("database", "--dir", tmp_path, STROM_PROJECT_DATABASE_URL=url)
    assert (said, code) == ("[database] url names a server: there is none to run here\n", 1)


def test_prj_09_a_pulse_is_whole_at_any_time(tmp_path):
    running = part.Part("x", Place(tmp_path), load(tmp_path / "none", {}), 0)
    running.place.run.mkdir()
    running.pulse({"a": 1})
    running.pulse({"a": 2})
    assert json.loads(part.pulse_file(running.place, "x").read_text()) == {"a": 2}
    assert [each.name for each in running.place.run.iterdir()] == ["x.pulse"]


def test_prj_09_what_is_somebody_elses_is_not_run_here(tmp_path):
    given = {"SCRAPER_SITE": "http://x", "DATABASE_URL": "postgresql://x/y"}
    environment = {f"STROM_PROJECT_{name}": value for name, value in given.items()}
    names = [each.name for each in parts_of(load(tmp_path / "none", environment))]
    assert names == ["broker", "processing", "scraper", "archive", "watch"]
