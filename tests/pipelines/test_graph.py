"""From a declaration to a checked graph: all that is wrong is found at once, without Spark."""

import subprocess
import sys
from pathlib import Path

import pytest

from strom.pipelines import Pipeline
from strom.pipelines.failure import DeclarationError
from strom.pipelines.graph import Graph, check


def names(nodes):
    return [node.name for node in nodes]


@pytest.fixture
def pipeline():
    pipeline = Pipeline("rides")
    pipeline.topic("rides")
    return pipeline


def add_step(pipeline, name, *inputs):
    braces = " JOIN ".join(f"{{{each}}}" for each in inputs)
    pipeline.sql(name, f"SELECT * FROM {braces}")


def problems(pipeline):
    return check(pipeline).problems


def test_a_steps_inputs_are_its_parameters_and_the_order_does_not_matter():
    pipeline = Pipeline("rides")
    pipeline.to_files("archive", of="both", path="x")

    @pipeline.step
    def both(long_rides, riders):
        """Rides with their riders."""

    pipeline.sql("long_rides", "SELECT * FROM {rides} WHERE km > 10")
    pipeline.table("riders")
    pipeline.topic("rides")

    graph = Graph.of(pipeline)

    assert graph["both"].inputs == ("long_rides", "riders")
    assert names(graph.nodes) == ["riders", "rides", "long_rides", "both", "archive"]
    assert names(graph.above("archive")) == ["riders", "rides", "long_rides", "both", "archive"]
    assert names(graph.above("long_rides")) == ["rides", "long_rides"]
    assert names(graph.sources_of("archive")) == ["riders", "rides"]
    assert names(graph.readers("rides")) == ["long_rides"]
    assert check(pipeline).warnings == ()


def test_an_unknown_input_comes_with_the_nearest_name(pipeline):
    add_step(pipeline, "long_rides", "ride")
    pipeline.to_topic("out", of="long_ride")
    assert problems(pipeline) == (
        "step 'long_rides' reads 'ride', which is unknown: did you mean 'rides'?",
        "sink 'out' reads 'long_ride', which is unknown: did you mean 'long_rides'?",
    )


def test_where_no_name_is_near_all_are_told(pipeline):
    pipeline.to_topic("out", of="weather")
    assert problems(pipeline) == ("sink 'out' reads 'weather', which is unknown: there is rides",)


def test_a_name_stands_for_one_thing(pipeline):
    add_step(pipeline, "rides", "rides")
    pipeline.to_topic("out", of="rides")
    assert problems(pipeline)[0] == (
        "'rides' is declared 2 times, as source and step: every name stands for one thing"
    )


def test_a_circle_is_shown(pipeline):
    add_step(pipeline, "a", "rides", "b")
    add_step(pipeline, "b", "a")
    pipeline.to_topic("out", of="b")
    (problem,) = problems(pipeline)
    assert problem.startswith("a circle: ")
    assert "a → b" in problem


def test_what_nobody_reads_is_odd_but_runs(pipeline):
    pipeline.topic("weather")
    pipeline.to_topic("out", of="rides")
    assert check(pipeline) == ((), ("source 'weather' is read by nobody and will not run",))
    assert names(Graph.of(pipeline).above("out")) == ["rides", "out"]


@pytest.mark.parametrize(
    ("reading", "topic"),
    [
        ({"topic": "events"}, "events"),
        ({"subscribe": "others,events"}, "events"),
        ({"subscribePattern": "events.*"}, "events-clean"),
        ({"assign": '{"events": [0]}'}, "events"),
    ],
)
def test_what_a_sink_writes_and_its_own_source_reads_is_told(reading, topic):
    pipeline = Pipeline("rides")
    pipeline.topic("rides", **reading)
    add_step(pipeline, "clean", "rides")
    pipeline.to_topic("out", of="clean", topic=topic)
    assert check(pipeline) == (
        (),
        (
            f"sink 'out' writes into topic '{topic}', which source 'rides' reads: what is written "
            "is read again, without end",
        ),
    )


def test_dead_letters_that_their_source_reads_are_told():
    pipeline = Pipeline("rides")
    pipeline.topic("rides", subscribePattern="rides.*", json="km int", dead_letters="rides-dead")
    assert "sink 'rides-dead-letters' writes into topic 'rides-dead'" in check(pipeline).warnings[0]


def test_a_table_and_another_cluster_may_have_the_topic_of_a_sink(pipeline):
    pipeline.table("riders")
    add_step(pipeline, "both", "rides", "riders")
    pipeline.to_topic("riders-again", of="both", topic="riders")
    pipeline.to_topic("copy", of="rides", topic="rides", **{"kafka.bootstrap.servers": "b:9092"})
    assert check(pipeline) == ((), ())


@pytest.mark.parametrize(
    ("declare", "told"),
    [
        (lambda p: p.topic(5, "events"), "5 is no name"),
        (lambda p: p.to_topic("more", of=["rides"]), "['rides'] is no name"),
        (lambda p: setattr(p, "name", None), "None is no name"),
    ],
)
def test_what_is_no_text_is_no_name(pipeline, declare, told):
    pipeline.to_topic("out", of="rides")
    declare(pipeline)
    assert problems(pipeline) == (f"{told}: names are texts",)


def test_from_a_sink_nothing_is_read(pipeline):
    pipeline.to_topic("out", of="rides")
    pipeline.to_topic("twice", of="out")
    (problem,) = problems(pipeline)
    assert problem.startswith("sink 'twice' reads the sink 'out'")
    assert "read 'rides'" in problem


def test_without_a_sink_there_is_nothing_to_run(pipeline):
    with pytest.raises(DeclarationError, match="there is no sink"):
        Graph.of(pipeline)


def test_a_step_without_input_is_refused(pipeline):
    pipeline.sql("one", "SELECT 1")
    pipeline.to_topic("out", of="one")
    assert "step 'one' has no input" in problems(pipeline)[0]


@pytest.mark.parametrize("name", ["", "a b", "7up", "../up", "a" * 101])
def test_a_name_that_cannot_be_a_directory_is_refused(pipeline, name):
    pipeline.to_topic(name, of="rides")
    assert f"'{name}' is no name" in problems(pipeline)[0]


def test_a_topics_name_may_be_no_name_for_a_source():
    pipeline = Pipeline("rides")
    pipeline.topic("ride-events")
    pipeline.to_topic("out", of="ride-events")
    assert "topic('rides', 'ride-events')" in problems(pipeline)[0]


def test_a_wrong_option_comes_with_the_nearest_name():
    pipeline = Pipeline("rides")
    pipeline.topic("rides", startingOffset="latest")
    pipeline.to_topic("out", of="rides")
    (problem,) = problems(pipeline)
    assert problem.startswith("source 'rides': ")
    assert "startingOffsets" in problem


def test_a_wrong_option_of_a_sink_too(pipeline):
    pipeline.to_topic("out", of="rides", **{"kafka.batch.sise": "5"})
    (problem,) = problems(pipeline)
    assert problem.startswith("sink 'out': ")
    assert "kafka.batch.size" in problem


def test_options_may_be_numbers_truths_and_paths():
    pipeline = Pipeline("rides")
    pipeline.topic("rides", maxOffsetsPerTrigger=100, failOnDataLoss=False)
    pipeline.table("riders", assign='{"riders": [0]}', minPartitions=2)
    pipeline.to_topic("out", of="rides", **{"kafka.batch.size": 5})
    pipeline.to_files("archive", of="rides", path=Path("/data"), maxRecordsPerFile=7)
    assert problems(pipeline) == ()
    options = [dict(node.options) for node in pipeline.nodes]
    assert options[0]["maxOffsetsPerTrigger"] == "100"
    assert options[0]["failOnDataLoss"] == "false"
    assert "subscribe" not in options[1]
    assert options[3] == {"format": "parquet", "path": "/data", "maxRecordsPerFile": "7"}


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"bootstrap": "localhost"}, "'localhost' is not HOST:PORT"),
        ({"bootstrap": ","}, "bootstrap"),
        ({"every": "1 secnd"}, "every = '1 secnd' is no time such as"),
        ({"every": 5}, "every = 5 is no time such as"),
        # Spark has parts of seconds only.
        ({"every": "1.5 minutes"}, "every = '1.5 minutes' is no time such as"),
        ({"every": "1 minute1 second"}, "every = '1 minute1 second' is no time such as"),
        ({"bootstrap": ["one:9092"]}, "bootstrap = ['one:9092'] is no text such as"),
    ],
)
def test_a_setting_that_is_none_is_refused(settings, told):
    pipeline = Pipeline("rides", **settings)
    pipeline.topic("rides")
    pipeline.to_topic("out", of="rides")
    assert told in problems(pipeline)[0]


@pytest.mark.parametrize(
    "every",
    [
        "0 seconds",
        "5 minutes 30 seconds",
        " 1 Second",
        "9 milliseconds",
        "interval 1 day",
        "1.5 seconds",
    ],
)
def test_times_are_as_in_spark(every):
    pipeline = Pipeline("rides", every=every)
    pipeline.topic("rides")
    pipeline.to_topic("out", of="rides")
    assert problems(pipeline) == ()


@pytest.mark.parametrize(
    ("declare", "told"),
    [
        (lambda p: p.to_topic("b", of="rides", mode=None), "mode = 'None' is unknown"),
        (lambda p: p.topic("a", json="x int", bad="skipp"), "did you mean 'skip'?"),
        (lambda p: p.topic("a", bad="skip"), "are for sources with json, avro or protobuf"),
        (lambda p: p.to_topic("b", of="rides", mode="apend"), "did you mean 'append'?"),
    ],
)
def test_a_word_that_is_none_of_the_choices_is_refused(pipeline, declare, told):
    pipeline.to_topic("out", of="rides")
    declare(pipeline)
    assert told in problems(pipeline)[0]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            {"avro": "no-such.avsc"},
            "source 'a': the schema no-such.avsc cannot be read",
        ),
        ({"avro": "{oops"}, "source 'a': an Avro schema is JSON"),
        ({"json": " "}, "source 'a': which columns does the JSON have?"),
        ({"protobuf": (b"", "shop.Ride")}, "source 'a': the descriptors have no message"),
        ({"json": "x int", "avro": "{}"}, "source 'a': json, avro or protobuf, one of them"),
    ],
)
def test_msg_12_a_schema_that_is_none_is_told_where_it_is_declared(given, told):
    pytest.importorskip("fastavro", reason="fastavro is not installed")
    with pytest.raises(DeclarationError) as caught:
        Pipeline("rides").topic("a", **given)
    assert str(caught.value).startswith(told)


def test_a_brace_that_names_no_input_is_told():
    with pytest.raises(DeclarationError, match=r"step 'odd'.*a brace"):
        Pipeline("rides").sql("odd", "SELECT '}'")


@pytest.mark.parametrize("name", ["args", "self", "sqlQuery"])
def test_a_name_that_spark_takes_for_its_own_is_refused_in_a_query(name):
    pipeline = Pipeline("rides")
    pipeline.topic(name)
    add_step(pipeline, "all_of_it", name)
    pipeline.to_topic("out", of="all_of_it")
    assert f"step 'all_of_it': '{name}' cannot stand in a query" in problems(pipeline)[0]


def test_two_sinks_of_files_have_two_paths(pipeline):
    """Spark leaves out the micro-batches of one that it takes for the other's."""
    pipeline.to_files("one", of="rides", path="/data/rides")
    pipeline.to_files("two", of="rides", path="/data/rides/")
    pipeline.to_files("three", of="rides", path="/data/rides/three")
    (problem,) = problems(pipeline)
    assert problem.startswith("sinks 'one' and 'two' write to /data/rides: ")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"path": " "}, "path is empty"),
        ({"path": "x", "mode": "complete"}, "files only get rows that are final"),
        ({"path": "x", "checkpointlocation": "y"}, "leave out the option 'checkpointLocation'"),
    ],
)
def test_what_files_cannot_have_is_refused(pipeline, options, told):
    pipeline.to_files("out", of="rides", **options)
    assert told in problems(pipeline)[0]


def test_options_of_files_are_known_in_any_case(pipeline):
    pipeline.to_files("out", of="rides", path="x", PartitionBy="rider", FORMAT="json")
    assert pipeline.nodes[-1].options == {"format": "json", "path": "x", "partitionBy": "rider"}


@pytest.mark.parametrize("value", [None, ["rider"], {"rides": {"0": 1}}])
def test_what_is_no_option_is_told_where_it_is_declared(pipeline, value):
    with pytest.raises(DeclarationError, match=r"option 'partitionBy' = .* is no text"):
        pipeline.to_files("out", of="rides", path="x", partitionBy=value)


def test_topics_are_named_by_texts():
    pipeline = Pipeline("rides")
    pipeline.topic("rides", ["one", "two"])
    pipeline.to_topic("out", of="rides")
    assert problems(pipeline) == ("['one', 'two'] is no name: names are texts",)


def test_all_problems_are_told_at_once(pipeline):
    add_step(pipeline, "a", "x")
    add_step(pipeline, "b", "y")
    assert len(problems(pipeline)) == 3


def test_declaring_and_checking_import_no_spark():
    code = (
        "import sys, strom.cli.app, strom.pipelines.loading, strom.pipelines.directory;"
        "sys.exit('pyspark' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
