"""Spark's errors in the words of a pipeline."""

from pathlib import Path

from strom.pipelines import Pipeline
from strom.pipelines.explaining import TEXT_LENGTH_MAX, explain, step_of

PYTHON = """\
[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Python worker failed
Traceback (most recent call last):
  File "worker.py", line 1, in main
strom.spark.failure.DataLossError: Records of rides-0 from 5 to 9 are gone
\tat org.apache.spark.Worker.run(Worker.scala:1)
"""
RAISED = """\
[STREAM_FAILED] Query terminated with exception: Job aborted
SparkRuntimeException: [USER_RAISED_EXCEPTION] source 'rides': no JSON SQLSTATE: P0001
"""


def test_of_a_python_traceback_the_last_line_counts():
    assert explain(PYTHON) == "Records of rides-0 from 5 to 9 are gone"


def test_what_a_pipeline_raised_itself_goes_before_all_else():
    assert explain(RAISED) == "source 'rides': no JSON"


def test_of_others_the_first_line_without_the_class():
    assert explain("java.lang.IllegalStateException: odd\n\tat x.y") == "odd"


def test_of_an_error_straight_from_java_the_last_cause_counts():
    told = "An error occurred while calling o7.start.\n: java.io.IOException: first\n\tat x.y(Z:1)"
    cause = "Caused by: java.io.IOException: No space left on device\n\tat x.y(Z:1)"
    assert explain(told) == "first"
    assert explain(f"{told}\n{cause}\n").startswith("No space left on device (make room")


def test_a_broker_that_does_not_answer_has_advice():
    text = PYTHON.replace("DataLossError", "UnreachableError")
    assert "-b, STROM_BOOTSTRAP" in explain(text)


def test_there_is_advice_for_a_full_disk_and_for_state_that_does_not_fit():
    full = explain("java.io.IOException: No space left on device\n\tat x")
    state = explain("[STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] Provided key schema does not match")
    assert full.endswith("(make room where the checkpoints are; the run goes on from there)")
    assert "--reset SINK" in state


def test_a_long_text_is_cut():
    assert len(explain("x" * 10_000)) == TEXT_LENGTH_MAX


def test_the_step_is_the_one_whose_lines_are_named():
    pipeline = Pipeline("rides")

    @pipeline.step
    def first(rides):
        return rides

    @pipeline.step
    def second(first):
        return first

    pipeline.sql("third", "SELECT * FROM {second}")
    line = second.__code__.co_firstlineno + 2
    file = Path(__file__).resolve()
    told = f'== DataFrame ==\n"__truediv__" was called from\n{file}:{line}\n'
    assert step_of(told, pipeline.nodes) == "second"
    assert step_of(told.replace(f":{line}", ":1"), pipeline.nodes) is None
    assert step_of("nothing of the kind", pipeline.nodes) is None
