"""Where a partition begins and ends, to whom, and in which epoch."""

from uuid import UUID

import pytest

from strom.broker.api.list_offsets import EARLIEST, EARLIEST_LOCAL, LATEST, find
from strom.log.config import LogConfig
from strom.records.batch import TRANSACTIONAL_FLAG, read_header
from strom.records.control_key import ControlType
from strom.records.marker import write_marker
from strom.records.record import Producer
from strom.replication.partition import READ_COMMITTED, Partition
from tests.broker.api.conftest import produce
from tests.conformance.batches import batch as sent
from tests.log.making import NOW, batch, new_disk, open_log

READ_UNCOMMITTED = 0
PRODUCER = Producer(7, 0, 0)


@pytest.fixture
def partition():
    made = Partition(UUID(int=9), 1, open_log(new_disk(), LogConfig()), None)
    made.lead(0, (1,), 0)
    return made


def append(partition, *values, **options):
    records = batch(*values, **options)
    partition.place(records, read_header(records), NOW, all_in_sync=True)
    partition.write_placed(NOW)


def test_an_open_transaction_is_the_end_for_careful_readers(partition):
    append(partition, b"a")
    append(partition, b"b", b"c", producer=PRODUCER, flags=TRANSACTIONAL_FLAG)
    append(partition, b"d")
    assert find(partition, LATEST, None, READ_UNCOMMITTED)[0] == 4
    assert find(partition, LATEST, None, READ_COMMITTED)[0] == 1
    marker = write_marker(ControlType.ABORT, producer=PRODUCER, coordinator_epoch=0, now_ms=NOW)
    partition.append_own(memoryview(marker), NOW)
    assert find(partition, LATEST, None, READ_COMMITTED)[0] == 5


@pytest.mark.parametrize("timestamp", [EARLIEST, EARLIEST_LOCAL])
def test_the_beginning_is_told_with_the_epoch_that_wrote_it(partition, timestamp):
    append(partition, b"a", b"b")
    partition.lead(4, (1,), 0)
    append(partition, b"c")
    assert find(partition, timestamp, None, READ_UNCOMMITTED) == (0, -1, 0)
    partition.log.raise_start_offset(2)
    assert find(partition, timestamp, None, READ_UNCOMMITTED) == (2, -1, 4)
    assert find(partition, LATEST, None, READ_UNCOMMITTED) == (3, -1, 4)


def test_a_partition_that_is_named_twice_is_refused_and_the_others_are_not(raw, topic):
    produce(raw, topic, sent([b"v"]), index=1)
    places = [{"partition_index": index, "timestamp": LATEST} for index in (0, 1, 0)]
    asked = {"replica_id": -1, "topics": [{"name": topic, "partitions": places}]}
    (answer,) = raw.ask("list_offsets", 11, asked)["topics"]
    told = {(each["partition_index"], each["error_code"]) for each in answer["partitions"]}
    assert told == {(0, "invalid_request"), (1, "none")}
