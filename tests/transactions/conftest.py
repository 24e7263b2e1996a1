"""The coordinator that most tests of transactions begin with."""

import pytest

from tests.transactions.machine_table import Table


@pytest.fixture
def table():
    return Table()
