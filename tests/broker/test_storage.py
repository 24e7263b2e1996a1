"""Formatting (CLU-13): whose a directory is, and with what a new cluster begins."""

from uuid import UUID

from strom.broker.quorum import read_bootstrap
from strom.broker.snapshots import read_snapshot
from strom.broker.storage import Plan, format_storage, inspect_storage
from strom.log.directory import LogDirectory, Meta, write_meta
from strom.log.files import OpenFiles
from strom.metadata.feature_decisions import bootstrap_records
from strom.raft.voters import Listener, ReplicaKey
from strom.testing.disk import FakeDisk

FIRST, SECOND = UUID(int=1001), UUID(int=1002)
VOTERS = "/a/__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"


def plan_of(*directories):
    return Plan(7, "cluster", directories, (Listener("CONTROLLER", "localhost", 9093),))


def formatted(*directories):
    disk = FakeDisk()
    format_storage(disk, plan_of(*directories), now_ms=5)
    return disk


def test_every_directory_gets_its_owner_and_the_first_one_the_metadata():
    disk = formatted(("/a", FIRST), ("/b", SECOND))
    assert [each.meta for each in inspect_storage(disk, ["/a", "/b"])] == [
        Meta(7, "cluster", FIRST),
        Meta(7, "cluster", SECOND),
    ]
    voters = read_snapshot(disk.read(VOTERS)).voters
    assert voters.includes(ReplicaKey(7, FIRST))
    assert voters.by_id[7][1] == (Listener("CONTROLLER", "localhost", 9093),)
    assert not disk.exists("/b/bootstrap.checkpoint")


def test_a_new_cluster_begins_with_the_newest_features():
    disk = formatted(("/a", FIRST))
    assert read_bootstrap(OpenFiles(disk), "/a") == list(bootstrap_records())


def test_formatting_again_changes_nothing():
    disk = formatted(("/a", FIRST))
    before = {name: disk.read(f"/a/{name}") for name, _ in disk.scan("/a")}
    format_storage(disk, plan_of(("/a", SECOND)), now_ms=99)
    assert {name: disk.read(f"/a/{name}") for name, _ in disk.scan("/a")} == before


def test_a_directory_added_later_is_formatted_beside_the_first():
    disk = formatted(("/a", FIRST))
    format_storage(disk, plan_of(("/a", FIRST), ("/b", SECOND)), now_ms=99)
    assert LogDirectory.is_formatted(disk, "/b")


def test_a_power_cut_after_formatting_leaves_a_node_that_starts():
    disk = formatted(("/a", FIRST))
    disk.crash()
    assert inspect_storage(disk, ["/a"])[0].meta == Meta(7, "cluster", FIRST)
    assert list(read_bootstrap(OpenFiles(disk), "/a")) == list(bootstrap_records())


def test_what_does_not_fit_together_is_told():
    disk = formatted(("/a", FIRST))
    for path, meta in (
        ("/other", Meta(7, "another", SECOND)),
        ("/node", Meta(8, "cluster", SECOND)),
        ("/twin", Meta(7, "cluster", FIRST)),
    ):
        disk.make_directory(path)
        disk.write(f"{path}/meta.properties", write_meta(meta))
    disk.make_directory("/empty")
    disk.make_directory("/broken")
    disk.write("/broken/meta.properties", b"version=1\n")

    def problem_of(path):
        return inspect_storage(disk, ["/a", path])[-1].problem

    assert problem_of("/other") == (
        "Invalid cluster.id in: /other/meta.properties. Expected cluster, but read another"
    )
    assert problem_of("/node").startswith("Stored node id 8 doesn't match previous node id 7")
    assert problem_of("/twin").startswith("Duplicate directory ID")
    assert problem_of("/empty") == "/empty is not formatted."
    assert problem_of("/none") == "/none does not exist."
    assert problem_of("/broken").startswith("/broken is not formatted:")
    assert inspect_storage(disk, ["/a"])[0].problem is None
