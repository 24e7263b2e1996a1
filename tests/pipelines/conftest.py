"""The session, the broker and the topics of Spark's tests, and pipelines that run on them."""

import pytest

from strom.pipelines import Pipeline
from strom.pipelines.directory import Directory
from tests.spark.conftest import spark, strom_topics

__all__ = ["spark", "strom_topics"]

AWAIT_SECONDS = 60


@pytest.fixture
def run(spark, strom_topics, tmp_path):
    """Run a pipeline, once on what is there unless told otherwise; return its last status."""
    from dataclasses import replace

    from strom.pipelines.running import Run

    def run_it(pipeline: Pipeline, *, once=True, bootstrap=None, **how):
        bootstrap = bootstrap or strom_topics.bootstrap
        pipeline.settings = replace(pipeline.settings, bootstrap=bootstrap)
        directory = Directory(tmp_path / "home", pipeline.name)
        at_work = Run(pipeline, directory, lambda: spark, file="test.py", once=once)
        return at_work.run(**{"stopping": lambda: False, "show": lambda _: None, **how})

    return run_it


@pytest.fixture
def topic(strom_topics):
    """A topic of one partition."""
    return strom_topics.make()
