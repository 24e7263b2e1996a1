"""What Spark says of micro-batches, as the numbers that people ask for."""

import json

import pytest

from strom.pipelines.progress import SinkProgress

BEGIN = SinkProgress("archive", "rides.archive")


def batch(number=0, rows=0, end=None, latest=None, **more):
    ends = {"endOffset": end, "latestOffset": latest}
    return {"batchId": number, "numInputRows": rows, "sources": [ends], **more}


def test_rows_add_up_and_the_rest_is_of_the_last_batch():
    first = BEGIN.after(
        batch(0, 100, processedRowsPerSecond=50.04, durationMs={"triggerExecution": 9})
    )
    second = first.after(
        batch(1, 20, processedRowsPerSecond=10.0, durationMs={"triggerExecution": 7})
    )
    assert (first.rows, first.rows_per_second, first.latency_ms) == (100, 50.0, 9)
    assert (second.rows, second.rows_per_second, second.latency_ms, second.batch) == (120, 10, 7, 1)


@pytest.mark.parametrize("dumped", [True, False])
def test_the_lag_is_what_lies_between_the_offsets_and_the_ends(dumped):
    end = {"rides": {"0": 60, "1": 40}, "#query": "ab"}
    latest = {"rides": {"0": 100, "1": 40, "2": 5}, "#ids": {"rides": "x"}}
    if dumped:
        end, latest = json.dumps(end), json.dumps(latest)
    after = BEGIN.after(batch(0, 100, end, latest))
    assert after.lag == 45
    assert after.done == pytest.approx(100 / 145)


def test_of_sources_that_are_no_topics_nobody_knows_the_lag():
    assert BEGIN.after(batch(0, 5, "7", "9")).lag is None
    assert BEGIN.after(batch(0, 5, None, None)).done is None


def test_nothing_to_read_is_all_of_it():
    assert BEGIN.after(batch(0, 0, {"a": {"0": 0}}, {"a": {"0": 0}})).done == 1


def test_bad_records_are_counted_over_the_run_and_all_sources():
    observed = {"bad records of a": {"bad": 2}, "bad records of b": {"bad": 1}, "mine": {"bad": 9}}
    after = BEGIN.after(batch(observedMetrics=observed)).after(batch(observedMetrics=observed))
    assert after.after(batch()).bad_rows == 6


def test_state_is_summed_over_the_operators_and_late_rows_over_the_run():
    one = {"numRowsTotal": 3, "memoryUsedBytes": 100, "numRowsDroppedByWatermark": 2}
    after = BEGIN.after(batch(stateOperators=[one, one], eventTime={"watermark": "2026"}))
    after = after.after(batch(stateOperators=[one]))
    assert (after.state_rows, after.state_bytes, after.late_rows) == (3, 100, 6)
    assert after.watermark == "2026"
