"""A transaction of as many partitions as its record has room for: it can be ended all the same.

One that could not would hold up careful readers of all of its partitions for ever.
"""

import pytest

from strom.testing.broker import LocalBroker
from tests.broker.api.conftest import create
from tests.broker.api.transacting import add, begin, until

PARTITIONS = 80
BATCH_BYTES_MAX = 400


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    directory = tmp_path_factory.mktemp("broker")
    with LocalBroker({"message.max.bytes": str(BATCH_BYTES_MAX)}, directory=directory) as local:
        yield local


@pytest.mark.parametrize("version", [3, 5])
@pytest.mark.parametrize("more", range(4))
def test_what_could_be_added_can_be_ended(raw, name, version, more):
    transactional_id = name + "x" * more
    create(raw, transactional_id, partitions=PARTITIONS)
    who = begin(raw, transactional_id)
    codes = []
    for index in range(PARTITIONS):
        codes += add(raw, transactional_id, who, transactional_id, [index])
    assert set(codes) == {"none", "unknown_server_error"}
    asked = {"transactional_id": transactional_id, "committed": True}
    assert until(raw, "end_txn", version, asked | who)["error_code"] == "none"
    assert begin(raw, transactional_id)["producer_id"] == who["producer_id"]
