"""The disk and the log that most tests begin with."""

import pytest

from tests.log.making import new_disk, open_log


@pytest.fixture
def disk():
    return new_disk()


@pytest.fixture
def log(disk):
    return open_log(disk)
