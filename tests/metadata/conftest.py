"""The cluster that most tests of the controller begin with."""

import pytest

from tests.metadata.cluster import Cluster


@pytest.fixture
def cluster():
    return Cluster()
