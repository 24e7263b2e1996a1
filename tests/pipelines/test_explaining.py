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
IN_A_FUNCTION = """\
[PYTHON_EXCEPTION] An exception was thrown from Python: Traceback (most recent call last):
  File "{file}", line {line}, in {name}
    return kms[km]
           ~~~^^^^
KeyError: 7
 SQLSTATE: 38000
"""
IN_A_QUERY = """\
[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012
== SQL (line 2, position 9) ==
{quoted}
        ^^^^

=== Streaming Query ===
"""
RAISED = """\
[STREAM_FAILED] Query terminated with exception: Job aborted
SparkRuntimeException: [USER_RAISED_EXCEPTION] source 'rides': no JSON SQLSTATE: P0001
"""


def test_of_a_python_traceback_the_last_line_counts():
    assert explain(PYTHON) == "Records of rides-0 from 5 to 9 are gone"


def test_an_error_of_pythons_own_has_its_kind():
    told = IN_A_FUNCTION.format(file="rides.py", line=1, name="f")
    assert explain(told) == "KeyError: 7"
    assert explain(told.replace("KeyError: 7", "AssertionError")) == "AssertionError"


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


def told(km):
    """A function that steps of the tests name."""
    return km


def kms(km):
    """Another."""
    return km


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


def test_the_step_is_the_one_in_which_a_function_raised():
    pipeline = Pipeline("rides")

    @pipeline.step
    def first(rides):
        return rides.select(told)

    @pipeline.step
    def second(first):
        def inner(km):
            return told(km)

        return first.select(inner)

    @pipeline.step
    def third(second):
        return second.select(kms)

    def raised(name, line):
        return IN_A_FUNCTION.format(file=second.__code__.co_filename, line=line, name=name)

    inside = second.__code__.co_firstlineno + 3
    # One step has the line; one names the function of the line; two of them do.
    assert step_of(raised("inner", inside), pipeline.nodes) == "second"
    assert step_of(raised("kms", 1), pipeline.nodes) == "third"
    assert step_of(raised("told", 1), pipeline.nodes) is None
    elsewhere = raised("kms", 1).replace(second.__code__.co_filename, "elsewhere.py")
    assert step_of(elsewhere, pipeline.nodes) is None


def test_the_step_is_the_one_whose_query_is_quoted():
    pipeline = Pipeline("rides")
    pipeline.sql("first", "SELECT 1/km AS share, '{{}}' AS braces FROM {rides} WHERE km < 5")
    pipeline.sql("second", "SELECT *,\n  1/km AS share FROM {first}")

    def quoting(line):
        return step_of(IN_A_QUERY.format(quoted=line), pipeline.nodes)

    assert quoting("  1/km AS share FROM _pyspark_0123456789abcd...") == "second"
    assert quoting("  1/km AS share FROM _pyspark_0123456789abcdef0123456789abcdef") == "second"
    assert quoting("...LECT 1/km AS share, '{}' AS braces FROM _pyspark_01234 WHERE...") == "first"
    assert quoting("SELECT 1/m AS share") is None
