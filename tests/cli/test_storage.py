import json

import pytest

from strom.broker.storage import lock_directory
from strom.log.disk import RealDisk


def owners(strom, *arguments):
    return json.loads(strom("storage", "info", *arguments, "--json").stdout)


def test_a_directory_gets_an_owner(strom, tmp_path):
    path = str(tmp_path / "data")
    identifier = strom("storage", "random-uuid").stdout.strip()
    result = strom("storage", "format", path, "--cluster-id", identifier, "--node-id", "7")
    assert result.stdout == f"Formatted {path} for node 7 of cluster {identifier}.\n"
    (owner,) = owners(strom, path)
    assert (owner["path"], owner["node_id"], owner["cluster_id"]) == (path, 7, identifier)
    assert identifier in strom("storage", "info", path).stdout


def test_directories_may_come_from_the_settings(strom, tmp_path):
    config = tmp_path / "server.properties"
    config.write_text(f"node.id=3\nlog.dirs={tmp_path}/a,{tmp_path}/b\n")
    assert strom("storage", "format", "--config", str(config)).exit_code == 0
    one, other = owners(strom, "--config", str(config))
    assert one["node_id"] == other["node_id"] == 3
    assert one["cluster_id"] == other["cluster_id"]
    assert one["directory_id"] != other["directory_id"]


def test_an_owned_directory_is_not_given_away(strom, tmp_path):
    path = str(tmp_path)
    assert strom("storage", "format", path).exit_code == 0
    before = owners(strom, path)
    result = strom("storage", "format", path)
    assert result.exit_code == 1
    assert "already formatted" in result.stderr
    assert strom("storage", "format", path, "--ignore-formatted").exit_code == 0
    assert owners(strom, path) == before


def test_a_formatted_directory_has_what_a_new_cluster_begins_with(strom, tmp_path):
    strom("storage", "format", str(tmp_path))
    assert (tmp_path / "bootstrap.checkpoint").exists()
    assert list((tmp_path / "__cluster_metadata-0").glob("*.checkpoint"))


def test_a_directory_more_belongs_to_the_same_cluster(strom, tmp_path):
    one, other = str(tmp_path / "one"), str(tmp_path / "other")
    strom("storage", "format", one)
    assert strom("storage", "format", one, other, "--ignore-formatted").exit_code == 0
    first, second = owners(strom, one, other)
    assert first["cluster_id"] == second["cluster_id"]
    identifier = json.loads(strom("storage", "random-uuid", "--json").stdout)["id"]
    result = strom("storage", "format", one, "-g", "--cluster-id", identifier)
    assert result.exit_code == 1
    assert "belongs to cluster" in result.stderr


def test_a_directory_that_somebody_is_about_to_format_is_left_to_them(strom, tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    lock = lock_directory(RealDisk(), str(other))
    result = strom("storage", "format", str(one), str(other))
    assert result.exit_code == 1
    assert f"{other}/.lock is held by another process" in result.stderr
    assert not one.exists()
    lock.release()
    assert strom("storage", "format", str(one), str(other)).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("info", "/no/such/directory"), 1, "is not formatted"),
        (("info",), 2, "name a directory"),
        (("info", "--config", "/no/such/file"), 1, "No such file"),
        (("format", "/dev/null/data"), 1, "cannot format"),
        (("format", "x", "--cluster-id", "no id"), 1, "is no cluster id"),
    ],
)
def test_mistakes_are_one_line(strom, arguments, code, text):
    result = strom("storage", *arguments)
    assert result.exit_code == code
    assert text in result.stderr
    assert result.stderr.count("\n") == 1
