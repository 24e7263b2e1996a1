"""What Spark's Python processes load: the first query of a session waits for each of them."""

import subprocess
import sys

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")


def loaded(code):
    """The modules that a new process has after this code."""
    code = f"import sys\n{code}\nprint(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return set(found.stdout.split())


def test_who_asks_for_the_columns_loads_nothing_else():
    found = loaded("from strom.spark.source import StromSource; StromSource({}).schema()")
    assert not {"pyarrow", "strom.spark.options", "strom.spark.reader"} & found


def test_who_plans_does_not_load_what_decodes_records():
    found = loaded("import strom.spark.reader")
    assert not {"pyarrow", "strom.records", "strom.spark.fetching"} & found


def test_who_plans_does_not_load_what_writes_records():
    found = loaded("import strom.spark.writer")
    assert not {"pyarrow", "strom.records.packing", "strom.spark.writing", "pandas"} & found


def test_who_shows_lag_does_not_load_spark():
    found = loaded("import strom.cli.lag")
    assert "strom.spark.marker" in found
    assert not {"pyspark", "pyarrow", "strom.spark.exactly_once"} & found


def test_records_become_columns_without_pandas():
    found = loaded(
        "from strom.records.columns import Taken, Texts\n"
        "from strom.spark.arrow import to_arrow\n"
        "text = Texts(bytes([0, 0, 0, 0, 1, 0, 0, 0]), b'a', None, False)\n"
        "one = Taken(1, text, text, bytes(8), bytes(8), bytes(4), None)\n"
        "batch = to_arrow(one, ('rides', 7))\n"
        "names = 'key', 'value', 'topic', 'partition', 'offset'\n"
        "found = [batch.column(name)[0].as_py() for name in names]\n"
        "assert found == [b'a', b'a', 'rides', 7, 0], found"
    )
    assert "pyarrow" in found
    assert "pandas" not in found
