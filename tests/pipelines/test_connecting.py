"""`strom pipeline validate --connect`: what the brokers lack, and what Spark would refuse."""

import pytest
from typer.testing import CliRunner

pytest.importorskip("pyspark", reason="PySpark is not installed")

from strom.cli import pipeline as commands
from strom.cli.app import app
from strom.pipelines import Pipeline
from strom.pipelines.analysing import analysis_problems
from strom.pipelines.connecting import cluster_problems

pytestmark = [pytest.mark.slow, pytest.mark.java]

FILE = """
from strom.pipelines import Pipeline

pipeline = Pipeline("rides", bootstrap="127.0.0.1:1")
pipeline.topic("rides", "{source}", json="rider string, km double")
pipeline.sql("totals", "SELECT rider, sum({column}) AS km FROM {{rides}} GROUP BY rider")
pipeline.to_topic("totals-of-riders", of="totals", key="rider", mode="update", topic="{target}")
"""


def test_topics_that_are_missing_are_told_of_sources_and_sinks(strom_topics):
    there = strom_topics.make(name="readings-of-today")
    pipeline = Pipeline("weather", bootstrap=strom_topics.bootstrap)
    pipeline.topic("all_right", there)
    pipeline.topic("typo", "readings-of-toda")
    pipeline.table("stations", "stations-nowhere")
    pipeline.to_topic("out", of="typo", topic="out-nowhere")
    pipeline.to_files("archive", of="stations", path="unused")
    first, second, third = cluster_problems(pipeline)
    assert first.startswith("source 'typo': Topic readings-of-toda does not exist")
    assert first.endswith("Did you mean 'readings-of-today'?")
    assert second.startswith("source 'stations': Topic stations-nowhere does not exist")
    assert second.endswith("Create it first: strom topic create stations-nowhere.")
    assert third.startswith("sink 'out': Topic out-nowhere does not exist (option 'topic'")


def test_names_that_no_topic_can_have_are_told(strom_topics):
    pipeline = Pipeline("weather", bootstrap=strom_topics.bootstrap)
    pipeline.topic("readings", "of today")
    pipeline.to_topic("out", of="readings", topic="x" * 300)
    first, second = cluster_problems(pipeline)
    assert first == "source 'readings': the broker refuses it: INVALID_TOPIC_EXCEPTION: of today"
    assert second.startswith("sink 'out': the broker refuses it: INVALID_TOPIC_EXCEPTION: xxx")


def test_brokers_that_do_not_answer_are_told_once(monkeypatch):
    monkeypatch.setattr("strom.pipelines.connecting.ANSWER_MS_MAX", 100)
    pipeline = Pipeline("weather", bootstrap="127.0.0.1:1")
    pipeline.topic("readings")
    pipeline.to_topic("out", of="readings")
    (problem,) = cluster_problems(pipeline)
    assert problem.startswith("no broker answers at 127.0.0.1:1: broker 127.0.0.1:1: ")
    assert "is it running" in problem


def test_what_spark_would_refuse_is_told_once_for_each_step(spark):
    pipeline = Pipeline("rides")
    pipeline.topic("rides", json="rider string, km double")
    pipeline.sql("typo", "SELECT kn FROM {rides}")
    pipeline.sql("totals", "SELECT rider, sum(km) AS km FROM {rides} GROUP BY rider")
    pipeline.to_files("one", of="typo", path="unused")
    pipeline.to_files("other", of="typo", path="unused too")
    pipeline.to_topic("final", of="totals", key="rider")
    pipeline.to_topic("changing", of="totals", key="rider", mode="update")
    problems = analysis_problems(spark, pipeline)
    told = dict(problem.split(": ", 1) for problem in problems)
    assert len(problems) == 2
    assert sorted(told) == ["final", "typo"]
    assert "kn" in told["typo"]
    assert "append" in told["final"].lower()


@pytest.mark.parametrize("column", ["km", "kn"])
def test_the_command_asks_brokers_and_spark(spark, strom_topics, tmp_path, monkeypatch, column):
    monkeypatch.setattr("strom.pipelines.session.open_session_for", lambda *_: spark)
    monkeypatch.setattr(commands, "end", lambda _: None)
    file = tmp_path / "rides.py"
    source, target = strom_topics.make(), strom_topics.make()
    file.write_text(FILE.format(source=source, target=target, column=column))
    words = ["pipeline", "validate", str(file), "--connect", "-b", strom_topics.bootstrap]
    result = CliRunner().invoke(app, words, prog_name="strom")
    if column == "km":
        all_right = "rides is all right: 1 source(s), 1 step(s), 1 sink(s)\n"
        assert (result.exit_code, result.stdout) == (0, all_right)
    else:
        assert result.exit_code == 1
        assert result.stdout.startswith("error: totals: ")
