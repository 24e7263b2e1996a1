"""What is told of a file's pages (CON-12): those in between count too."""

import os

import pytest

from strom.broker import page_cache
from strom.broker.page_cache import HAS_NOWAIT, is_fresh, is_resident, read_through
from strom.log.nowait import UNCOUNTED, can_read, count_pages
from strom.testing.broker import LocalBroker
from tests.broker.api.conftest import create, produce
from tests.broker.test_cold import can_evict
from tests.conformance.batches import batch, headers
from tests.conformance.raw import Raw

#: Much more than a system drops at once.
SIZE = 16 << 20
LOOKS_MAX = 1000
DAY_SECONDS = 86_400

needs_nowait = pytest.mark.skipif(not HAS_NOWAIT, reason="nobody can tell what is in memory here")


@pytest.fixture
def fd(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(SIZE))
    fd = os.open(path, os.O_RDONLY)
    yield fd
    os.close(fd)


@pytest.fixture(params=["counted", "tried"])
def way(request, monkeypatch, fd):
    """With cachestat, where there is one, and without."""
    if request.param == "tried":
        monkeypatch.setattr(page_cache, "count_pages", lambda *_: UNCOUNTED)
    elif count_pages(fd, 0, SIZE) == UNCOUNTED:
        pytest.skip("this system does not count pages")


@needs_nowait
@pytest.mark.usefixtures("way")
def test_what_is_in_memory_is_told_to_be(fd):
    read_through(fd, 0, SIZE)
    assert any(is_resident(fd, 100, SIZE - 100) for _ in range(LOOKS_MAX))


@needs_nowait
@pytest.mark.usefixtures("way")
def test_a_hole_between_the_ends_is_found(fd, tmp_path):
    if not can_evict(tmp_path):
        pytest.skip("this file system keeps what it has in memory")

    def with_a_hole():
        os.fdatasync(fd)
        os.posix_fadvise(fd, SIZE // 4, SIZE // 2, os.POSIX_FADV_DONTNEED)
        return not is_resident(fd, 0, SIZE)

    assert any(with_a_hole() for _ in range(LOOKS_MAX))
    # The ends alone do not show it.
    assert can_read(fd, 0)
    assert can_read(fd, SIZE - 1)


def test_where_nobody_can_tell_only_what_was_just_written_counts(fd, tmp_path, monkeypatch):
    monkeypatch.setattr(page_cache, "HAS_NOWAIT", False)
    monkeypatch.setattr(page_cache, "FRESH_BYTES", SIZE // 2)
    assert is_resident(fd, SIZE - 100, 100)
    assert not is_resident(fd, 0, 100)
    long_ago = os.stat(fd).st_mtime - DAY_SECONDS
    os.utime(tmp_path / "file", (long_ago, long_ago))
    assert not is_fresh(fd, SIZE - 100)


def test_a_broker_serves_without_any_help_of_the_system(tmp_path, monkeypatch):
    """BRK-13: no sendfile, and nobody who tells what is in memory."""
    monkeypatch.setattr("strom.broker.host.HAS_SENDFILE", False)
    for module in ("broker.page_cache", "log.disk"):
        monkeypatch.setattr(f"strom.{module}.HAS_NOWAIT", False)
    monkeypatch.setattr(page_cache, "FRESH_BYTES", 0)
    sent = [batch([os.urandom(1000)] * 300) for _ in range(8)]
    with LocalBroker(directory=tmp_path) as local, Raw(local.bootstrap) as raw:
        create(raw, "t", partitions=1)
        produce(raw, "t", *sent)
        place = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 25}
        asked = {"max_bytes": 1 << 25, "topics": [{"topic": "t", "partitions": [place]}]}
        (found,) = raw.ask("fetch", 11, asked)["responses"][0]["partitions"]
        assert found["error_code"] == "none"
        assert [each.base_offset for each in headers(found["records"])] == list(range(0, 2400, 300))
        assert len(found["records"]) == sum(map(len, map(bytes, sent)))
