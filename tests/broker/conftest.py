"""A disk in memory to begin with, and a client of the broker that a module has."""

import pytest

from strom.testing.disk import FakeDisk
from tests.conformance.raw import Raw


@pytest.fixture
def disk():
    made = FakeDisk()
    made.make_directory("/data")
    return made


@pytest.fixture
def raw(broker):
    with Raw(broker.bootstrap) as connection:
        yield connection
