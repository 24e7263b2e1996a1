"""A start with many partitions after a clean stop: nothing of their data is looked at (TOP-21)."""

import re

import pytest

from strom.broker.host import Host
from strom.log.disk import RealDisk
from strom.testing.broker import LocalBroker
from tests.broker.api.conftest import create
from tests.conformance.batches import batch
from tests.conformance.raw import Raw

PARTITIONS = 300
#: The data of a partition, and what finds something in it.
OF_A_SEGMENT = re.compile(r"/t-\d+/\d{20}\.(log|index|timeindex)$")


class NotingDisk(RealDisk):
    """A disk that notes which files are opened or read."""

    def __init__(self):
        self.used = []

    def open(self, path, *, create=False):
        self.used.append(path)
        return super().open(path, create=create)

    def read(self, path):
        self.used.append(path)
        return super().read(path)

    def of_segments(self):
        return [path for path in self.used if OF_A_SEGMENT.search(path)]


def fill(raw):
    """One batch into every partition."""
    data = [{"index": n, "records": batch([b"%d" % n])} for n in range(PARTITIONS)]
    asked = {"acks": -1, "timeout": 60_000, "topic_data": [{"name": "t", "partition_data": data}]}
    answers = raw.ask("produce", 9, asked)["responses"][0]["partition_responses"]
    assert {each["error_code"] for each in answers} == {"none"}


def fetch(raw, index):
    place = {"partition": index, "fetch_offset": 0, "current_leader_epoch": -1}
    topics = [{"topic": "t", "partitions": [place | {"partition_max_bytes": 1 << 20}]}]
    asked = {"replica_id": -1, "min_bytes": 1, "max_bytes": 1 << 20, "topics": topics}
    (found,) = raw.ask("fetch", 12, asked)["responses"][0]["partitions"]
    return found["records"]


@pytest.mark.slow
def test_top_21_a_start_opens_no_file_of_a_segment(tmp_path):
    with LocalBroker(directory=tmp_path) as broker, Raw(broker.bootstrap) as raw:
        create(raw, "t", PARTITIONS)
        fill(raw)
    disk = NotingDisk()
    with (
        LocalBroker(directory=tmp_path, host=Host(disk=disk)) as broker,
        Raw(broker.bootstrap) as raw,
    ):
        # It knows where each log ends all the same.
        places = [{"partition_index": n, "timestamp": -1} for n in range(PARTITIONS)]
        topics = [{"name": "t", "partitions": places}]
        told = raw.ask("list_offsets", 7, {"replica_id": -1, "topics": topics})["topics"][0]
        assert {each["offset"] for each in told["partitions"]} == {1}
        assert disk.used, "this is not the broker's disk"
        assert disk.of_segments() == []
        assert fetch(raw, 7)[16:] == batch([b"7"])[16:]
        assert {path.rpartition("/")[0] for path in disk.of_segments()} == {f"{tmp_path}/t-7"}
