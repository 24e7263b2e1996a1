"""Pipelines at work: real topics, real Spark."""

import json

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions

pytest.importorskip("pyspark", reason="PySpark is not installed")

from pyspark.sql import functions as F  # noqa: N812

from strom.pipelines import Pipeline
from strom.pipelines.directory import Directory
from strom.pipelines.failure import ChangedError, StepError
from strom.pipelines.status import DONE, FAILED, STARTING, STOPPED

pytestmark = [pytest.mark.slow, pytest.mark.java]


def rides_of(topic, path):
    pipeline = Pipeline("rides")
    pipeline.topic("rides", topic, json="rider string, km double")
    pipeline.sql("long_rides", "SELECT rider, km FROM {rides} WHERE km > 10")
    pipeline.to_files("archive", of="long_rides", path=str(path))
    return pipeline


def stored_offsets(topics, group, topic):
    (future,) = topics.admin.list_consumer_group_offsets(
        [ConsumerGroupTopicPartitions(group)]
    ).values()
    found = future.result().topic_partitions
    return {each.partition: each.offset for each in found if each.topic == topic}


def kms(spark, path):
    return sorted(row.km for row in spark.read.parquet(str(path)).collect())


def test_a_second_run_goes_on_where_the_first_ended(spark, strom_topics, run, tmp_path):
    topic = strom_topics.make(2)
    strom_topics.fill(topic, [b'{"km": 5}', b'{"km": 20}', b'{"km": 30}'], 2)
    pipeline = rides_of(topic, tmp_path / "out")

    first = run(pipeline)
    strom_topics.fill(topic, [b'{"km": 40}'])
    second = run(pipeline)

    assert (first.state, first.sinks[0].rows, first.sinks[0].lag) == (DONE, 3, 0)
    assert (second.state, second.sinks[0].rows, second.sinks[0].batch) == (DONE, 1, 1)
    assert kms(spark, tmp_path / "out") == [20, 30, 40]
    assert Directory(tmp_path / "home", "rides").status() == second
    assert stored_offsets(strom_topics, "rides.archive", topic) == {0: 3, 1: 1}


def test_str_01_a_request_ends_a_continuous_run_and_the_next_goes_on(
    topic, spark, strom_topics, run, tmp_path
):
    strom_topics.fill(topic, [b'{"km": 20}'] * 3)
    pipeline = rides_of(topic, tmp_path / "out")
    directory = Directory(tmp_path / "home", "rides")

    more = [b'{"km": 30}']

    def go_on_and_stop(status):
        rows = status.sinks[0].rows if status.sinks else 0
        if rows == 3 and more:
            # What comes while it runs is read by the same run.
            strom_topics.fill(topic, [more.pop()])
        elif rows == 4:
            directory.ask_to_stop()

    stopped = run(pipeline, once=False, show=go_on_and_stop)
    strom_topics.fill(topic, [b'{"km": 40}'])

    assert (stopped.state, stopped.once, stopped.sinks[0].rows) == (STOPPED, False, 4)
    assert run(pipeline).sinks[0].rows == 1
    assert kms(spark, tmp_path / "out") == [20, 20, 20, 30, 40]


def test_str_04_20_a_changed_row_of_a_table_is_seen_by_later_records(strom_topics, run, tmp_path):
    rides, riders = strom_topics.make(), strom_topics.make()
    strom_topics.fill(riders, [b'{"name": "Ada"}'], keys=[b"a"])
    strom_topics.fill(rides, [b'{"rider": "a"}'])
    directory = Directory(tmp_path / "home", "named")
    seen, changed = [], []
    pipeline = Pipeline("named", every="0 seconds")
    pipeline.topic("rides", rides, json="rider string")
    pipeline.table("riders", riders, json="name string")
    pipeline.sql(
        "named",
        "SELECT rider, name FROM {rides} AS rides LEFT JOIN {riders} AS riders "
        "ON rides.rider = riders.key",
    )

    @pipeline.to_batches(of="named")
    def collect(rows, _number):
        seen.extend((row.rider, row.name) for row in rows.collect())

    def change_then_stop(_status):
        if len(seen) == 2:
            directory.ask_to_stop()
        elif seen and not changed:
            changed.append(True)
            strom_topics.fill(riders, [b'{"name": "Eve"}'], keys=[b"a"])
            strom_topics.fill(rides, [b'{"rider": "a"}'])

    run(pipeline, once=False, show=change_then_stop)
    assert seen == [("a", "Ada"), ("a", "Eve")]


def test_a_run_is_seen_from_its_beginning_and_a_missing_topic_ends_it(run, tmp_path):
    directory = Directory(tmp_path / "home", "rides")
    seen = []

    def look(_status):
        seen.append((directory.status().state, directory.is_held()))

    with pytest.raises(StepError, match=r"^archive: .*no-such-topic"):
        run(rides_of("no-such-topic", tmp_path / "out"), show=look)
    assert seen[0] == (STARTING, True)
    assert seen[-1] == (FAILED, True)
    assert not directory.is_held()


def test_a_failure_after_the_request_to_stop_is_a_stop(run, tmp_path):
    status = run(rides_of("no-such-topic", tmp_path / "out"), stopping=lambda: True)
    assert status.state == STOPPED


def test_a_sink_that_does_not_fit_its_checkpoint_is_refused_until_it_is_reset(
    topic, spark, strom_topics, run, tmp_path
):
    strom_topics.fill(topic, [b'{"km": 1}', b'{"km": 2}'])
    seen = []

    def total(function):
        pipeline = Pipeline("totals")
        pipeline.topic("rides", topic, json="rider string, km double")
        pipeline.sql("totals", f"SELECT {function}(km) AS km FROM {{rides}}")
        pipeline.to_batches(of="totals", mode="complete")(collect)
        return pipeline

    def collect(rows, _number):
        seen.append(rows.first().km)

    run(total("sum"))
    with pytest.raises(ChangedError, match=r"sink 'collect'.*sum.*max.*--reset collect"):
        run(total("max"))
    assert Directory(tmp_path / "home", "totals").status().state == FAILED
    run(total("max"), resets=["collect"])

    assert seen == [3.0, 2.0]


def test_a_time_is_written_with_all_its_digits(strom_topics, run):
    """Spark's own JSON of a row leaves out what is below a millisecond."""
    topic, out = strom_topics.make(), strom_topics.make()
    strom_topics.fill(
        topic, [b'{"at": "2030-01-01T00:00:00.123456Z", "local": "2030-01-01T01:02:03.654321"}']
    )
    pipeline = Pipeline("times")
    pipeline.topic("rides", topic, json="at timestamp, local timestamp_ntz")
    pipeline.sql("times", "SELECT at, local FROM {rides}")
    pipeline.to_topic("out", of="times", key="at", topic=out)
    run(pipeline)
    (row,) = strom_topics.read_once_there(out, 1)
    assert json.loads(row.value) == {
        "at": "2030-01-01T00:00:00.123456Z",
        "local": "2030-01-01T01:02:03.654321",
    }


def test_another_mode_of_a_sink_with_state_is_refused(strom_topics, run):
    """Windows that were to be written once they are final were forgotten."""
    topic, out = strom_topics.make(), strom_topics.make()
    strom_topics.fill(topic, [b'{"at": "2030-01-01T00:00:00Z"}'])

    def windows(mode):
        pipeline = Pipeline("windows")
        pipeline.topic("rides", topic, json="at timestamp")

        @pipeline.step
        def counted(rides):
            in_time = rides.withWatermark("at", "1 minute")
            groups = in_time.groupBy(F.window("at", "5 minutes")).count()
            return groups.select(F.col("window.start").alias("begins"), "count")

        pipeline.to_topic("out", of="counted", key="begins", mode=mode, topic=out)
        return pipeline

    run(windows("append"))
    with pytest.raises(ChangedError, match=r"sink 'out'.*its mode was append and is update now"):
        run(windows("update"))
    strom_topics.fill(topic, [b'{"at": "2030-01-01T01:00:00Z"}'])
    run(windows("append"))
    assert [row.value for row in strom_topics.read_once_there(out, 1)] == [
        b'{"begins":"2030-01-01T00:00:00.000000Z","count":1}'
    ]


def test_another_join_of_a_stream_with_itself_is_refused(strom_topics, run):
    topic, out = strom_topics.make(), strom_topics.make()
    strom_topics.fill(topic, [b'{"id": "1", "car": "a"}', b'{"id": "2", "car": "b"}'])

    def pairs(by):
        pipeline = Pipeline("pairs")
        pipeline.topic("rides", topic, json="id string, car string")
        columns = "x.id, x.car, y.id AS other, y.car AS of"
        pipeline.sql(
            "pairs", f"SELECT {columns} FROM {{rides}} AS x JOIN {{rides}} AS y ON x.{by} = y.{by}"
        )
        pipeline.to_topic("out", of="pairs", key="id", topic=out)
        return pipeline

    run(pairs("id"))
    strom_topics.fill(topic, [b'{"id": "3", "car": "a"}'])
    with pytest.raises(ChangedError, match=r"sink 'out'.*Join Inner"):
        run(pairs("car"))


def test_files_of_another_checkpoint_are_not_gone_on_with(strom_topics, run, tmp_path):
    pipeline = rides_of(strom_topics.make(), tmp_path / "out")
    (tmp_path / "out" / "_spark_metadata").mkdir(parents=True)
    checkpoint = Directory(tmp_path / "home", "rides").checkpoint("archive")
    with pytest.raises(StepError, match=r"^archive: .* has files of another checkpoint"):
        run(pipeline)
    checkpoint.mkdir(parents=True)
    with pytest.raises(StepError, match=r"^archive: .* has files of another checkpoint"):
        run(pipeline, resets=["archive"])
    assert checkpoint.exists()


def test_files_of_another_checkpoint_are_found_by_their_address_too(
    topic, spark, strom_topics, run, tmp_path
):
    """A reset was taken for done without a word: all micro-batches were held to be written."""
    strom_topics.fill(topic, [b'{"km": 20}'])
    pipeline = rides_of(topic, f"file://{tmp_path}/out")
    run(pipeline)
    strom_topics.fill(topic, [b'{"km": 30}'])
    with pytest.raises(StepError, match=r"^archive: file:.* has files of another checkpoint"):
        run(pipeline, resets=["archive"])
    run(pipeline)
    assert kms(spark, tmp_path / "out") == [20, 30]


def test_an_error_in_a_steps_code_names_the_step(strom_topics, run):
    pipeline = Pipeline("wrong")
    pipeline.topic("rides", strom_topics.make(), json="km double")
    pipeline.sql("typo", "SELECT kn FROM {rides}")
    pipeline.to_files("archive", of="typo", path="unused")
    with pytest.raises(StepError, match=r"^typo: .*kn.*km"):
        run(pipeline)


def test_an_error_in_a_running_query_names_the_step(topic, strom_topics, run, tmp_path):
    strom_topics.fill(topic, [b'{"km": 0}'])
    pipeline = Pipeline("wrong")
    pipeline.topic("rides", topic, json="km int")

    @pipeline.step
    def per_km(rides):
        return rides.select(1 / F.col("km"))

    pipeline.to_files("archive", of="per_km", path=str(tmp_path / "out"))
    with pytest.raises(StepError, match=r"^per_km: .*DIVIDE_BY_ZERO"):
        run(pipeline)


def test_an_error_in_a_running_query_names_the_step_of_sql(topic, strom_topics, run, tmp_path):
    strom_topics.fill(topic, [b'{"km": 0, "rider": "Ada"}'])

    def failing(name, query):
        pipeline = Pipeline(name)
        pipeline.topic("rides", topic, json="km int, rider string")
        pipeline.sql("known", "SELECT * FROM {rides} WHERE rider IS NOT NULL")
        pipeline.sql("shares", query)
        pipeline.to_files("archive", of="shares", path=str(tmp_path / name))
        return pipeline

    with pytest.raises(StepError, match=r"^shares: .*DIVIDE_BY_ZERO"):
        run(failing("by-zero", "SELECT 1/km AS share FROM {known}"))
    # The value that was wrong is told, where Spark tells it.
    with pytest.raises(StepError, match=r"^shares: .*CAST_INVALID_INPUT.*'Ada'"):
        run(failing("no-number", "SELECT cast(rider AS int) AS number FROM {known}"))


def test_an_error_in_a_function_of_a_step_names_the_step_and_the_offsets(
    topic, strom_topics, run, tmp_path
):
    strom_topics.fill(topic, [b'{"km": null}'] * 2)
    pipeline = Pipeline("wrong")
    pipeline.topic("rides", topic, json="km int")

    @pipeline.step
    def known(rides):
        return rides.where("km IS NOT NULL")

    @pipeline.step
    def shares(known):
        @F.udf("double")
        def share(km):
            raise ValueError(f"no share of {km} km")

        return known.select(share("km"))

    pipeline.to_files("archive", of="shares", path=str(tmp_path / "out"))
    run(pipeline)
    strom_topics.fill(topic, [b'{"km": 7}', b'{"km": null}'])
    place = f"micro-batch 1: offsets 2 to 3 of {topic}-0"
    with pytest.raises(StepError, match=rf"^shares: ValueError: no share of 7 km; {place}$"):
        run(pipeline)


def test_a_record_that_does_not_parse_is_named(topic, strom_topics, run, tmp_path):
    strom_topics.fill(topic, [b'{"km": 1}', b"{oops"])
    pipeline = rides_of(topic, tmp_path / "out")
    with pytest.raises(StepError) as caught:
        run(pipeline)
    told = str(caught.value)
    assert f"source 'rides': the record at offset 1 of {topic}-0 is no JSON" in told
    assert "{oops" in told


def test_bad_records_may_be_left_out_or_kept_apart(topic, strom_topics, run):
    strom_topics.fill(topic, [b'{"km": 1}', b"{oops"])
    found = {}
    pipeline = Pipeline("bad")
    pipeline.topic("good", topic, json="km double", bad="skip")
    pipeline.topic("all", topic, json="km double", bad="keep")

    @pipeline.to_batches(of="good")
    def skipped(rows, _number):
        found["skip"] = [row.km for row in rows.collect()]

    @pipeline.to_batches(of="all")
    def kept(rows, _number):
        found["keep"] = [(row.km, row.bad and row.bad.value) for row in rows.collect()]

    status = run(pipeline)
    assert found == {"skip": [1.0], "keep": [(1.0, None), (None, b"{oops")]}
    assert [sink.bad_rows for sink in status.sinks] == [1, 1]
