"""Deleted files are removed by threads: a large one takes its time, and the loop has none."""

import threading
from pathlib import Path

from strom.broker.host import Host
from strom.testing.broker import LocalBroker
from strom.testing.disk import FakeDisk
from tests.broker.api.conftest import create, produce
from tests.conformance.batches import batch
from tests.conformance.raw import Raw
from tests.patience import PATIENCE_SECONDS

AT_ONCE = {"log.retention.check.interval.ms": "1", "log.segment.delete.delay.ms": "0"}


class NotingDisk(FakeDisk):
    """Notes which thread removes what was deleted."""

    def __init__(self):
        super().__init__()
        self.threads = {}
        self.removes = threading.Condition()

    def remove(self, path):
        self.note(path)
        super().remove(path)

    def remove_tree(self, path):
        self.note(path)
        super().remove_tree(path)

    def note(self, path):
        with self.removes:
            self.threads[path] = threading.current_thread()
            self.removes.notify_all()

    def wait_removed(self, ending):
        """Wait until something was removed whose path ends like this; by which threads."""

        def found():
            return {thread for path, thread in self.threads.items() if path.endswith(ending)}

        with self.removes:
            assert self.removes.wait_for(found, PATIENCE_SECONDS)
            return found()


def test_neither_retention_nor_a_deleted_topic_has_the_loop_remove_files():
    disk = NotingDisk()
    disk.make_directory("/data")
    local = LocalBroker(AT_ONCE, directory=Path("/data"), host=Host(disk=disk))
    with local, Raw(local.bootstrap) as raw:
        loop = local._thread
        create(raw, "flug", 1, internal_segment_bytes=200, retention_bytes=0)
        produce(raw, "flug", batch([b"v" * 90]), batch([b"v" * 90]))
        assert loop not in disk.wait_removed(".log.deleted")
        asked = {"topics": [{"name": "flug", "topic_id": None}], "timeout": 10_000}
        (gone,) = raw.ask("delete_topics", 6, asked)["responses"]
        assert gone["error_code"] == "none", gone
        assert loop not in disk.wait_removed("-delete")
