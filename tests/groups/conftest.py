"""The group that most tests of the consumer protocol begin with."""

import pytest

from tests.groups.consumer_table import Table


@pytest.fixture
def table():
    return Table({"t": 4})
