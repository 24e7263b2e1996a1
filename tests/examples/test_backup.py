"""A backup is whole, and what is none is refused before anything is replaced (PRJ-09)."""

import io
import json
import tarfile

import pytest

from examples.final_project.deployment import backup
from examples.final_project.deployment.backup import FORMAT, MANIFEST, back_up, restore
from examples.final_project.deployment.operation import OperationError, deployment_at
from examples.final_project.part import held
from examples.final_project.place import Place


def deployment(directory, **environment):
    (directory / "secrets").mkdir(parents=True)
    (directory / "run").mkdir()
    return deployment_at(Place(directory), environment)


@pytest.fixture
def at(tmp_path):
    """A deployment that does not run, with something in each of its directories."""
    made = deployment(tmp_path / "here")
    data = made.place.data
    for name in ("broker/t-0/00.log", "database/data/PG_VERSION", "checkpoints/q/offsets/0"):
        (data / name).parent.mkdir(parents=True)
        (data / name).write_text(name)
    for name in ("database/wheel/bin/postgres", "database/data.new/x"):
        (data / name).parent.mkdir(parents=True)
        (data / name).write_text("made anew by a start")
    made.place.password.write_text("*:*:*:postgres:secret\n")
    made.place.password.chmod(0o600)
    return made


def files(place):
    data = place.data
    return {str(f.relative_to(data)): f.read_text() for f in data.rglob("*") if f.is_file()}


@pytest.fixture
def elsewhere(tmp_path):
    return deployment(tmp_path / "elsewhere")


def test_prj_09_what_was_backed_up_is_there_again(at, elsewhere):
    file = back_up(at)
    assert file.stat().st_mode & 0o777 == 0o600
    restore(elsewhere, file)
    wanted = {name: text for name, text in files(at.place).items() if "anew" not in text}
    assert files(elsewhere.place) == wanted
    assert elsewhere.place.password.read_text() == at.place.password.read_text()
    assert elsewhere.place.password.stat().st_mode & 0o777 == 0o600
    assert elsewhere.place.database.stat().st_mode & 0o777 == 0o700
    # What is replaced stays for once.
    (elsewhere.place.data / "newer").write_text("x")
    restore(elsewhere, file)
    assert files(elsewhere.place) == wanted
    assert (elsewhere.place.directory / "data.before/newer").exists()


def test_prj_09_a_backup_that_cannot_be_written_leaves_nothing(at, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(backup, "_add_text", full)
    with pytest.raises(OSError, match="No space left"):
        back_up(at)
    assert list(at.place.backups.iterdir()) == []


def made(file, **members):
    with tarfile.open(file, "w:gz") as tar:
        for name, text in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    return file


OURS = json.dumps({"format": FORMAT})


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"data/x": "1"}, "is not a backup of this project"),
        ({MANIFEST: "{", "data/x": "1"}, "is not a backup of this project"),
        ({MANIFEST: json.dumps({"format": FORMAT + 1})}, "or of a later form of it"),
        ({MANIFEST: OURS, "../out": "1"}, "is not a whole backup"),
        ({MANIFEST: OURS, "data/x": "1"}, "is not a whole backup"),
    ],
)
def test_prj_09_what_is_no_backup_replaces_nothing(members, said, at, tmp_path):
    before = files(at.place)
    file = made(tmp_path / "b.tar.gz", **members)
    with pytest.raises(OperationError, match=said):
        restore(at, file)
    assert files(at.place) == before
    assert not (tmp_path / "here/out").exists()
    assert not (at.place.directory / "restored.new").exists()


def test_prj_09_half_a_backup_replaces_nothing(at, elsewhere, tmp_path):
    whole = back_up(at).read_bytes()
    half = tmp_path / "half.tar.gz"
    for size in (0, 1, 30, len(whole) // 2, len(whole) - 1):
        half.write_bytes(whole[:size])
        with pytest.raises(OperationError):
            restore(elsewhere, half)
        assert not elsewhere.place.data.exists()


def test_prj_09_nothing_is_restored_into_what_runs(at, elsewhere):
    file = back_up(at)
    held(elsewhere.place, "broker")
    with pytest.raises(OperationError, match="is running"):
        restore(elsewhere, file)


def test_prj_09_somebody_elses_database_is_not_in_a_backup_and_that_is_said(tmp_path):
    url = {"STROM_PROJECT_DATABASE_URL": "postgresql://x/y"}
    with pytest.raises(OperationError, match="not this project's"):
        back_up(deployment(tmp_path / "given", **url))
