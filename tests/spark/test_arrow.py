"""Columns as Arrow's record batches, at their edges; all else is in test_reading.py."""

import subprocess
import sys

import pytest

pytest.importorskip("pyarrow", reason="PyArrow is not installed")

#: In a process of its own: Arrow ends the one in which it finds a column nowhere in memory.
NO_RECORDS = """
from strom.records import columns, plain_columns
from strom.spark.arrow import SCHEMA, SCHEMA_WITH_HEADERS, to_arrow

for made_by in (columns.Columns, plain_columns.Columns):
    for with_headers, schema in ((False, SCHEMA), (True, SCHEMA_WITH_HEADERS)):
        batch = to_arrow(made_by(with_headers).take(), ("rides", 0))
        batch.validate(full=True)
        assert (batch.num_rows, batch.schema) == (0, schema)
"""


def test_no_records_are_a_batch_without_rows():
    done = subprocess.run([sys.executable, "-c", NO_RECORDS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
