"""The same parts as systemd's units and in a compose file (PRJ-09).

What no machine of the tests may have, systemd and a Docker daemon, is named where it is missing.
"""

import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from examples.final_project.deployment import health
from examples.final_project.deployment.parts import PARTS
from tests.examples.test_parts import SECONDS_MAX

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
DEPLOYMENT = ROOT / "examples/final_project/deployment"
UNITS = sorted((DEPLOYMENT / "systemd").iterdir())
COMPOSE = DEPLOYMENT / "compose.yaml"
MODULE = "examples.final_project."
EARLY = {each.name for each in PARTS if not each.after_preparation}


def passes(*words):
    done = subprocess.run(
        [*map(str, words)], capture_output=True, text=True, timeout=SECONDS_MAX, check=False
    )
    assert (done.returncode, done.stderr.strip()) == (0, ""), done.stdout + done.stderr


def unit(name):
    parser = ConfigParser(interpolation=None, strict=False)
    # Names that differ in case are different ones to systemd.
    parser.optionxform = str
    parser.read(DEPLOYMENT / "systemd" / f"strom-project-{name}.service")
    return parser


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_prj_09_systemd_has_the_parts_as_they_are(part):
    found = unit(part.name)
    service, of = found["Service"], found["Unit"]
    assert service["ExecStart"].split()[1:] == ["-m", MODULE + part.name]
    assert service.get("KillSignal", "SIGTERM") == f"SIG{part.stop_signal}"
    assert int(service["TimeoutStopSec"]) == part.stop_seconds
    assert service["Restart"] == "always"
    needs = {f"strom-project-{name}.service" for name in part.needs}
    if part.after_preparation:
        needs.add("strom-project-prepare.service")
        assert set(of["After"].split()) == set(of["Wants"].split()) == needs
    else:
        assert "Wants" not in of


def test_prj_09_systemd_prepares_between_the_early_and_the_late():
    of = unit("prepare")["Unit"]
    needed = {f"strom-project-{name}.service" for name in ("broker", "database")}
    assert set(of["After"].split()) == set(of["Requires"].split()) == needed
    names = {path.name for path in UNITS}
    services = {f"strom-project-{each.name}.service" for each in PARTS}
    assert names == services | {"strom-project-prepare.service", "strom-project.target"}


def test_prj_09_systemd_finds_nothing_wrong_with_the_units(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed: the units were not verified")
    for path in UNITS:
        # The programs have to be there: those of this repository.
        text = path.read_text().replace("/opt/strom/.venv/bin/python", sys.executable)
        (tmp_path / path.name).write_text(text)
    passes("systemd-analyze", "verify", "--man=no", *sorted(tmp_path.iterdir()))


def test_prj_09_the_compose_file_has_the_parts_as_they_are():
    services = YAML(typ="safe").load(COMPOSE)["services"]
    assert set(services) == {each.name for each in PARTS} | {"prepare"}
    assert services["prepare"]["command"][-2:] == [f"{MODULE}deployment", "prepare"]
    for part in PARTS:
        service = services[part.name]
        assert service["command"] == ["python", "-m", MODULE + part.name]
        assert service.get("stop_signal", "SIGTERM") == f"SIG{part.stop_signal}"
        assert service["stop_grace_period"] == f"{part.stop_seconds}s"
        assert service["healthcheck"]["test"][-2:] == ["health", part.name]
        assert part.name in health.CHECKS
        wanted = set(part.needs) | ({"prepare"} if part.after_preparation else set())
        assert set(service.get("depends_on", {})) == wanted


def test_prj_09_the_compose_file_and_the_image_keep_to_their_rules():
    scripts = Path(sys.executable).parent
    passes(scripts / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", COMPOSE)
    passes(scripts / "hadolint", DEPLOYMENT / "Dockerfile")


@pytest.mark.timeout(1800)
def test_prj_09_the_image_can_be_built():
    """Only where there is Docker: it fetches from a registry, and takes minutes."""
    if (
        shutil.which("docker") is None
        or subprocess.run(["docker", "info"], capture_output=True, check=False).returncode
    ):
        pytest.skip("no Docker daemon: the image was not built and the containers were not run")
    file = DEPLOYMENT / "Dockerfile"
    built = subprocess.run(["docker", "build", "-q", "-f", file, ROOT], check=False)
    assert built.returncode == 0
