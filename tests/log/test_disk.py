"""Both disks do the same, as far as no power goes; then the fake one loses what it may."""

import errno
import os
import time
from random import Random

import pytest

from strom.log import disk as disks
from strom.log.cold import ColdError, patiently
from strom.log.disk import Disk, RealDisk
from strom.log.nowait import plain_read_now
from strom.testing.disk import PAGE_BYTES, FakeDisk, PowerCutError


@pytest.fixture(params=["real", "fake"])
def place(request, tmp_path) -> tuple[Disk, str]:
    if request.param == "real":
        return RealDisk(), str(tmp_path)
    disk = FakeDisk()
    disk.make_directory("/data")
    return disk, "/data"


def test_bytes_are_read_where_they_were_written(place):
    disk, root = place
    file = disk.open(f"{root}/a", create=True)
    assert file.write_at(b"abcdef", 0) == 6
    assert file.write_at(memoryview(b"XY"), 2) == 2
    assert file.read_at(1, 4) == b"bXYe"
    assert file.read_at(4, 100) == b"ef"
    assert file.read_at(100, 1) == b""
    assert file.size() == 6


def test_a_write_behind_the_end_leaves_zeros_between(place):
    disk, root = place
    file = disk.open(f"{root}/a", create=True)
    file.write_at(b"x", 3)
    assert file.read_at(0, 10) == b"\0\0\0x"


def test_truncating_cuts_and_extends(place):
    disk, root = place
    file = disk.open(f"{root}/a", create=True)
    file.write_at(b"abcdef", 0)
    file.truncate(2)
    file.truncate(4)
    file.sync()
    file.start_write_back(0, 4)
    assert disk.read(f"{root}/a") == b"ab\0\0"


def test_reserving_changes_nothing_that_can_be_read(place):
    disk, root = place
    file = disk.open(f"{root}/a", create=True)
    file.write_at(b"abc", 0)
    file.reserve(3, 1 << 20)
    assert file.size() == 3
    assert file.write_at(b"def", 3) == 3
    assert disk.read(f"{root}/a") == b"abcdef"


def test_what_is_reserved_on_ext4_is_given_back_by_cutting(tmp_path, monkeypatch):
    path = str(tmp_path / "a")
    file = RealDisk().open(path, create=True)
    file.write_at(b"abc", 0)
    file.sync()
    used = os.stat(path).st_blocks
    may = disks._may_reserve(file.fileno())
    file.reserve(3, 1 << 20)
    assert (os.stat(path).st_blocks > used) == may
    file.truncate(3)
    assert os.stat(path).st_blocks == used
    # Another file system, or one that is about to be full, as far as anybody can tell.
    for name in ("_EXT4", "PLENTY"):
        with monkeypatch.context() as changed:
            changed.setattr(disks, name, 0)
            file.reserve(3, 1 << 20)
        assert os.stat(path).st_blocks == used


def test_an_open_file_survives_renaming_and_removal(place):
    disk, root = place
    file = disk.open(f"{root}/a", create=True)
    file.write_at(b"kept", 0)
    disk.rename(f"{root}/a", f"{root}/b")
    disk.remove(f"{root}/b")
    assert file.read_at(0, 4) == b"kept"
    assert not disk.exists(f"{root}/b")


def test_what_is_missing_is_said_so_or_does_not_matter(place):
    disk, root = place
    for attempt in (disk.open, disk.read, disk.scan, disk.directories):
        with pytest.raises(FileNotFoundError):
            attempt(f"{root}/none")
    with pytest.raises(FileNotFoundError):
        disk.rename(f"{root}/none", f"{root}/other")
    disk.remove(f"{root}/none")
    disk.remove_tree(f"{root}/none")


def test_files_are_listed_with_sizes_and_directories_apart(place):
    disk, root = place
    disk.make_directory(f"{root}/p/q")
    disk.make_directory(f"{root}/p/q")
    disk.write(f"{root}/p/a", b"123")
    disk.write(f"{root}/p/a", b"12")
    assert sorted(disk.scan(f"{root}/p")) == [("a", 2)]
    assert disk.directories(f"{root}/p") == ["q"]
    assert disk.directories(root) == ["p"]


def test_a_file_tells_when_it_was_written(place):
    disk, root = place
    disk.write(f"{root}/a", b"")
    assert abs(disk.modified_ms(f"{root}/a") - time.time() * 1000) < 60_000
    with pytest.raises(FileNotFoundError):
        disk.modified_ms(f"{root}/b")


def test_a_directory_is_renamed_with_all_that_is_in_it(place):
    disk, root = place
    disk.make_directory(f"{root}/t-0")
    disk.write(f"{root}/t-0/a", b"1")
    disk.rename(f"{root}/t-0", f"{root}/t-0.x-delete")
    disk.sync_directory(root)
    assert disk.read(f"{root}/t-0.x-delete/a") == b"1"
    disk.remove_tree(f"{root}/t-0.x-delete")
    assert disk.directories(root) == []


def test_an_atomic_write_replaces_and_leaves_no_other_file(place):
    disk, root = place
    for content in (b"one", b"two"):
        disk.write_atomically(f"{root}/a", content)
        assert disk.read(f"{root}/a") == content
    disk.write_atomically(f"{root}/a", b"three", sync=False)
    assert disk.scan(root) == [("a", 5)]


def test_a_lock_is_given_once_at_a_time(place):
    disk, root = place
    held = disk.lock(f"{root}/.lock")
    with pytest.raises(BlockingIOError):
        disk.lock(f"{root}/.lock")
    held.release()
    disk.lock(f"{root}/.lock").release()


@pytest.fixture
def fake() -> FakeDisk:
    disk = FakeDisk()
    disk.make_directory("/d")
    disk.sync_directory("/d")
    return disk


def test_a_crash_loses_what_was_not_synced(fake):
    file = fake.open("/d/a", create=True)
    file.write_at(b"safe", 0)
    file.sync()
    fake.sync_directory("/d")
    file.write_at(b"gone", 4)
    fake.write("/d/b", b"no name")
    fake.crash()
    assert fake.scan("/d") == [("a", 4)]
    with pytest.raises(OSError, match=r"Bad file"):
        file.read_at(0, 1)


def test_a_crash_keeps_some_of_what_was_not_synced(fake):
    seen = set()
    for seed in range(40):
        fake.write_atomically("/d/a", b"")
        fake.open("/d/a").write_at(b"abcd", 0)
        fake.crash(Random(seed))
        seen.add(fake.read("/d/a"))
    assert {b"", b"abcd", b"ab", b"ab\0\0"} <= seen


def test_an_atomic_write_is_old_or_new_after_any_crash(fake):
    for changes in range(12):
        fake.write_atomically("/d/a", b"old")
        fake.cut_power_after(changes)
        try:
            fake.write_atomically("/d/a", b"newer")
        except PowerCutError:
            fake.crash(Random(changes))
        assert fake.read("/d/a") in (b"old", b"newer")
        fake.crash()


def test_failures_are_raised_once_and_leave_half_a_write(fake):
    file = fake.open("/d/a", create=True)
    fake.fail_next("write_at", errno.ENOSPC)
    with pytest.raises(OSError, match=r"space"):
        file.write_at(b"abcd", 0)
    assert fake.read("/d/a") == b"ab"
    fake.shorten_next(3)
    assert file.write_at(b"abcd", 0) == 3
    assert file.write_at(b"abcd", 0) == 4


def test_without_power_nothing_works(fake):
    fake.cut_power_after(0)
    with pytest.raises(PowerCutError):
        fake.write("/d/a", b"x")
    with pytest.raises(PowerCutError):
        fake.exists("/d/a")


# Reading without waiting.


def test_what_is_in_memory_is_read_now(place):
    disk, root = place
    file = disk.open(f"{root}/a", create=True)
    file.write_at(b"abcdef", 0)
    assert file.read_now(1, 4) == b"bcde"
    assert file.read_now(4, 100) == b"ef"
    assert file.read_now(100, 1) == b""


def test_what_was_dropped_is_read_now_once_somebody_has_waited_for_it():
    disk = FakeDisk()
    file = disk.open("/a", create=True)
    file.write_at(bytes(3 * PAGE_BYTES), 0)
    disk.cool()
    assert disk.open("/a").read_at(PAGE_BYTES, 10) == bytes(10)
    with pytest.raises(ColdError) as cold:
        file.read_now(PAGE_BYTES - 1, 2)
    assert file.read_now(PAGE_BYTES, 10) == bytes(10)
    cold.value.fetch()()
    assert file.read_now(PAGE_BYTES - 1, 2) == bytes(2)
    assert [each[1:] for each in disk.waits] == [
        ("open", "/a"),
        ("read_at", "/a"),
        ("read_at", "/a"),
    ]


@pytest.fixture
def plain(monkeypatch):
    """Reading by `os`, where something else can be put in its place."""
    monkeypatch.setattr(disks, "read_now", plain_read_now)


@pytest.mark.usefixtures("plain")
def test_where_the_system_cannot_tell_everything_is_read_now(tmp_path, monkeypatch):
    """As on macOS, and on file systems that do not know the flag."""
    (tmp_path / "a").write_bytes(b"abcdef")
    monkeypatch.setattr(disks, "HAS_NOWAIT", False)
    assert RealDisk().open(f"{tmp_path}/a").read_now(1, 4) == b"bcde"
    monkeypatch.setattr(disks, "HAS_NOWAIT", True)
    monkeypatch.setattr(os, "preadv", failing(errno.EOPNOTSUPP))
    assert RealDisk().open(f"{tmp_path}/a").read_now(1, 4) == b"bcde"


@pytest.mark.usefixtures("plain")
def test_an_error_of_the_disk_is_not_taken_for_cold(tmp_path, monkeypatch):
    (tmp_path / "a").write_bytes(b"abcdef")
    file = RealDisk().open(f"{tmp_path}/a")
    monkeypatch.setattr(os, "preadv", failing(errno.EIO))
    with pytest.raises(OSError, match="Input/output"):
        file.read_now(1, 4)


@pytest.mark.usefixtures("plain")
def test_a_system_that_denies_what_was_just_read_is_not_asked_for_ever(tmp_path, monkeypatch):
    (tmp_path / "a").write_bytes(b"abcdef")
    file = RealDisk().open(f"{tmp_path}/a")
    monkeypatch.setattr(os, "preadv", failing(errno.EAGAIN))
    assert patiently(lambda: file.read_now(1, 4)) == b"bcde"


@pytest.mark.skipif(not disks.HAS_NOWAIT, reason="nobody can tell what is in memory here")
@pytest.mark.usefixtures("plain")
def test_a_read_that_breaks_off_in_the_middle_is_cold(tmp_path, monkeypatch):
    (tmp_path / "a").write_bytes(b"abcdef")
    file = RealDisk().open(f"{tmp_path}/a")
    monkeypatch.setattr(os, "preadv", lambda *_: 2)
    with pytest.raises(ColdError):
        file.read_now(0, 4)


def failing(number):
    def fail(*_):
        raise OSError(number, os.strerror(number))

    return fail
