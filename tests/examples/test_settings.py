"""The project's settings: a file, the environment, one line for what is wrong (PRJ-07)."""

import re
import tomllib
from dataclasses import fields

import pytest

from examples.final_project.place import PATH_BYTES_MAX, PlaceError, place_at
from examples.final_project.settings import SECTIONS, Settings, SettingsError, load, template


def loaded(tmp_path, text="", **environment):
    file = tmp_path / "project.toml"
    file.write_text(text)
    return load(file, {f"STROM_PROJECT_{name}": value for name, value in environment.items()})


def test_prj_07_without_a_file_there_are_defaults(tmp_path):
    assert load(tmp_path / "none.toml", {"PATH": "x"}) == Settings()


def test_prj_07_the_environment_goes_before_the_file(tmp_path):
    text = "[site]\nport = 1000\nfaults = 1\n[flow]\nquiet_minutes = 9\n"
    found = loaded(tmp_path, text, SITE_PORT="2000", BROKER_HTTP_PORT="3000")
    assert (found.site.port, found.site.faults, found.flow.quiet_minutes) == (2000, 1, 9)
    assert found.broker.http == "http://127.0.0.1:3000"


def test_prj_07_the_template_has_every_setting_with_its_default(tmp_path):
    text = template()
    assert loaded(tmp_path, text) == Settings()
    uncommented = re.sub(r"^#(\w+ = )", r"\1", text, flags=re.MULTILINE)
    assert loaded(tmp_path, uncommented) == Settings()
    assert {name: {each.name for each in fields(made)} for name, made in SECTIONS.items()} == {
        name: set(of) for name, of in tomllib.loads(uncommented).items()
    }


@pytest.mark.parametrize(
    ("text", "environment", "said"),
    [
        ("[site", {}, "project.toml: "),
        ("[sight]\n", {}, "there is no section [sight]; there are site, broker"),
        ("site = 1", {}, "there is no section [site]"),
        ("[site]\nprot = 1", {}, "[site] prot: there is no such setting; there are listen, host"),
        ("[site]\nport = '1'", {}, "[site] port (its port): '1' is not a port, 1 to 65535"),
        ("[site]\nport = true", {}, "True is not a port"),
        ("[site]\nport = 1.5", {}, "1.5 is not a port"),
        ("[site]\nport = 65536", {}, "65536 is not a port"),
        ("[site]\nfaults = nan", {}, "nan is not a share"),
        ("[site]\nlisten = 'localhost'", {}, "'localhost' is not an address of this machine"),
        ("[site]\nhost = 'a b'", {}, "'a b' is not the name or the address"),
        ("[scraper]\nsite = 'ftp://x'", {}, "'ftp://x' is not http://... or https://..."),
        ("[archive]\nkeep_days = 0", {}, "0 is not 1 or more"),
        ("", {"SITE_PORT": "x"}, "STROM_PROJECT_SITE_PORT (its port): 'x' is not a port"),
        ("", {"SITE_PROT": "1"}, "STROM_PROJECT_SITE_PROT: there is no such setting"),
        ("", {"SIGHT_PORT": "1"}, "STROM_PROJECT_SIGHT_PORT: there is no section sight"),
    ],
)
def test_what_is_wrong_is_refused_with_one_line_that_names_it(tmp_path, text, environment, said):
    with pytest.raises(SettingsError) as refused:
        loaded(tmp_path, text, **environment)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("url", ["mysql://me:secret@x/y", "postgresql://me:secret@x/y?nonsense=1"])
def test_a_secret_is_not_said(tmp_path, url):
    with pytest.raises(SettingsError) as refused:
        loaded(tmp_path, DATABASE_URL=url)
    assert "secret" not in str(refused.value)


def test_a_file_that_is_none_is_refused(tmp_path):
    (tmp_path / "project.toml").write_bytes(b"\xff")
    with pytest.raises(SettingsError, match=r"project\.toml"):
        load(tmp_path / "project.toml", {})
    with pytest.raises(SettingsError):
        load(tmp_path, {})


def test_a_directory_that_is_too_long_for_sockets_is_refused(tmp_path):
    assert place_at("/" + (PATH_BYTES_MAX - 1) * "x").directory.is_absolute()
    with pytest.raises(PlaceError, match="sockets"):
        place_at("/" + PATH_BYTES_MAX * "x")
    with pytest.raises(PlaceError, match="not a directory"):
        place_at("/dev/null")
