"""The directories at start (DSK-01): looked at, locked, formatted, and lost without the others."""

import errno
import os
import tempfile
from pathlib import Path

import pytest

from strom.broker.host import Host
from strom.broker.startup import StartupError, open_directories
from strom.broker.storage import lock_directory
from strom.log.directory import Meta, write_meta
from strom.log.disk import RealDisk
from strom.metadata.settings.load import load
from strom.testing.disk import FakeDisk

METADATA_LOG = "__cluster_metadata-0"


class Disk(FakeDisk):
    """A disk that can be told which paths fail, and says in which order it is changed."""

    def __init__(self):
        super().__init__()
        self.broken = {}
        self.done = []

    def _refuse(self, path):
        for start, number in self.broken.items():
            if path == start or path.startswith(start + "/"):
                raise OSError(number, os.strerror(number), path)

    def read(self, path):
        self._refuse(path)
        return super().read(path)

    def make_directory(self, path):
        if not self.exists(path):
            self._refuse(path)
        super().make_directory(path)

    def lock(self, path):
        self._refuse(path)
        self.done.append(f"lock {path}")
        return super().lock(path)

    def remove(self, path):
        self._refuse(path)
        super().remove(path)

    def rename(self, source, target):
        self._refuse(target)
        self.done.append(f"write {target}")
        super().rename(source, target)

    def files(self):
        return sorted(self._names)


@pytest.fixture
def disk():
    return Disk()


def start(disk, *paths, **settings):
    given = {"log.dirs": ",".join(paths), **settings}
    given = {name.replace("_", "."): value for name, value in given.items()}
    return open_directories(Host(disk=disk), load(given).settings)


def stop(storage):
    storage.close(clean=True)


def refusal(disk, *paths, **settings):
    with pytest.raises(StartupError) as refused:
        start(disk, *paths, **settings)
    assert "\n" not in str(refused.value)
    return str(refused.value)


# Locked first.


def test_a_directory_is_locked_before_anything_is_written_to_it(disk):
    start(disk, "/a", "/b")
    assert disk.done[:2] == ["lock /a/.lock", "lock /b/.lock"]
    assert "write /a/meta.properties" in disk.done
    assert "write /b/meta.properties" in disk.done


def test_who_formats_a_new_directory_is_not_disturbed(disk):
    """Another process has made the directory and locked it, and has written nothing yet."""
    disk.make_directory("/b")
    lock_directory(disk, "/b")
    before = disk.files()
    assert refusal(disk, "/a", "/b") == (
        "another process uses /b: stop it, or choose other log.dirs"
    )
    assert disk.files() == before


def test_a_directory_that_another_has_formatted_meanwhile_keeps_its_owner(disk):
    class Raced(Disk):
        def lock(self, path):
            if path == "/b/.lock" and not self.exists("/b/meta.properties"):
                self.write("/b/meta.properties", write_meta(Meta(1, "other", Host().new_id())))
            return super().lock(path)

    raced = Raced()
    assert refusal(raced, "/a", "/b").startswith("the metadata log should be in /a")
    assert not raced.exists("/a/meta.properties")


def test_all_locks_are_given_back_when_a_start_fails(disk):
    lock = lock_directory(disk, "/b")
    refusal(disk, "/a", "/b")
    lock.release()
    assert [each.path for each in start(disk, "/a", "/b").logs] == ["/a", "/b"]


# Lost ones.


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES, errno.EROFS, errno.ENOTDIR])
def test_a_directory_that_cannot_be_read_or_made_is_lost_alone(disk, number):
    disk.broken["/b"] = number
    storage = start(disk, "/a", "/b", "/c")
    assert [each.failed is None for each in storage.logs] == [True, False, True]
    assert storage.logs[1].id is None
    assert not disk.exists("/b")


def test_the_lost_one_is_told_in_the_log(disk, caplog):
    disk.broken["/b"] = errno.EIO
    start(disk, "/a", "/b")
    (line,) = [each for each in caplog.records if each.levelname == "ERROR"]
    assert line.getMessage() == (
        "The log directory /b cannot be used (Input/output error): its partitions are offline"
    )


def test_it_is_as_it_was_when_its_disk_is_back(disk):
    first = start(disk, "/a", "/b")
    stop(first)
    disk.broken["/b"] = errno.EIO
    stop(start(disk, "/a", "/b"))
    disk.broken.clear()
    again = start(disk, "/a", "/b")
    assert [each.id for each in again.logs] == [each.id for each in first.logs]
    assert [each.was_clean for each in again.logs] == [True, True]


@pytest.mark.parametrize("content", [b"", b"\0" * 80, b"version=1\n", b"version=9\nnode.id=1\n"])
def test_a_directory_that_does_not_say_whose_it_is_is_lost_and_left_alone(disk, content):
    stop(start(disk, "/a", "/b"))
    disk.write("/b/meta.properties", content)
    storage = start(disk, "/a", "/b")
    assert storage.logs[1].failed is not None
    assert disk.read("/b/meta.properties") == content


@pytest.mark.parametrize(
    "name", [".lock", ".kafka_cleanshutdown", "recovery-point-offset-checkpoint"]
)
def test_a_disk_that_fails_at_any_step_loses_the_directory_and_gives_its_lock_back(disk, name):
    if name == ".kafka_cleanshutdown":
        stop(start(disk, "/a", "/b"))
    disk.broken[f"/b/{name}"] = errno.EIO
    storage = start(disk, "/a", "/b")
    assert [each.failed is None for each in storage.logs] == [True, False]
    disk.broken.clear()
    lock_directory(disk, "/b")


# What no node starts without.


def test_no_node_starts_without_its_metadata_log(disk):
    disk.broken["/a"] = errno.EIO
    assert refusal(disk, "/a", "/b") == "cannot use /a: Input/output error"
    assert disk.files() == []


def test_no_node_starts_without_any_log_directory(disk):
    disk.broken.update({"/b": errno.EIO, "/c": errno.EROFS})
    told = refusal(disk, "/b", "/c", **{"metadata.log.dir": "/a"})
    assert told == ("cannot use any of log.dirs: /b: Input/output error; /c: Read-only file system")


def test_metadata_may_have_a_directory_of_its_own_that_holds_no_partitions(disk):
    storage = start(disk, "/b", "/c", **{"metadata.log.dir": "/a"})
    assert storage.metadata.path == "/a"
    assert [each.path for each in storage.logs] == ["/b", "/c"]
    assert disk.exists(f"/a/{METADATA_LOG}")


def test_metadata_does_not_begin_anew_beside_directories_that_are_in_use(disk):
    stop(start(disk, "/b", "/c", **{"metadata.log.dir": "/a"}))
    disk.remove_tree("/a")
    told = refusal(disk, "/b", "/c", **{"metadata.log.dir": "/a"})
    assert told.startswith("the metadata log should be in /a, which is not formatted, but /b is")
    assert not disk.exists("/a")


def test_metadata_is_not_looked_for_in_another_place_than_it_is(disk):
    """The first of `log.dirs` has it by default: their order is not a matter of taste."""
    stop(start(disk, "/a", "/b"))
    before = disk.files()
    assert refusal(disk, "/b", "/a") == (
        "the metadata log is in /a: set metadata.log.dir=/a, which is /b now"
    )
    assert disk.files() == before


def test_a_metadata_log_without_an_owner_is_not_given_another(disk):
    stop(start(disk, "/a"))
    disk.write(f"/a/{METADATA_LOG}/quorum-state", b"{}")
    disk.remove("/a/meta.properties")
    assert refusal(disk, "/a").startswith("there is a metadata log in /a, but no meta.properties")


def foreign(disk, path, **changed):
    """Make a directory somebody else's."""
    disk.make_directory(path)
    meta = {"node_id": 1, "cluster_id": "other", "directory_id": Host().new_id(), **changed}
    disk.write(f"{path}/meta.properties", write_meta(Meta(**meta)))


def test_what_is_another_clusters_or_nodes_stops_the_start_as_in_kafka(disk):
    storage = start(disk, "/a")
    stop(storage)
    cluster_id, directory_id = storage.cluster_id, storage.metadata.id
    foreign(disk, "/cluster")
    foreign(disk, "/node", cluster_id=cluster_id, node_id=7)
    foreign(disk, "/twin", cluster_id=cluster_id, directory_id=directory_id)
    before = disk.files()
    assert refusal(disk, "/a", "/cluster").startswith("Invalid cluster.id in: /cluster/meta.prop")
    assert refusal(disk, "/a", "/node").startswith("Stored node id 7 doesn't match previous node")
    assert refusal(disk, "/a", "/twin").endswith("It was the ID of /a, but also of /twin")
    assert refusal(disk, "/a", node_id="9").startswith("the data in /a belongs to node 1, and")
    assert disk.files() == before


# The disk of this machine.


def test_the_same_on_a_real_disk():
    """A parent that is a file, a file instead of a directory, a file in another's place."""
    with tempfile.TemporaryDirectory() as root:
        good, file = Path(root, "good"), Path(root, "file")
        file.write_text("not a directory")
        odd = Path(root, "odd")
        (odd / "meta.properties").mkdir(parents=True)
        paths = [str(good), str(file), str(file / "below"), str(odd)]
        storage = start(RealDisk(), *paths)
        assert [each.failed is None for each in storage.logs] == [True, False, False, False]
        assert file.read_text() == "not a directory"
        assert refusal(RealDisk(), *paths).startswith(f"another process uses {good}")
        stop(storage)
