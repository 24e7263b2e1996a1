"""Whether Spark can make sense of a pipeline: every step analysed, every sink able to follow it.

Nothing is run and nothing is read: Spark knows the columns of a topic without asking a broker.
"""

from pyspark.sql import DataFrame, SparkSession

from strom.pipelines.declaration import Pipeline
from strom.pipelines.failure import StepError
from strom.pipelines.frames import Frames, named
from strom.pipelines.graph import ANY_SERVER, Graph


def analysis_problems(spark: SparkSession, pipeline: Pipeline) -> list[str]:
    """Return what Spark would refuse of a checked pipeline, each beginning with the step."""
    graph = Graph.of(pipeline)
    servers = pipeline.settings.bootstrap or ANY_SERVER
    frames = Frames(spark, graph, pipeline.name, servers)
    problems: dict[str, None] = {}
    for sink in graph.sinks:
        try:
            rows = frames.of(sink)
            with named(sink.name):
                check_mode(spark, rows, sink.mode)
        except StepError as error:
            problems[str(error)] = None
    return list(problems)


def check_mode(spark: SparkSession, rows: DataFrame, mode: str) -> None:
    """Refuse rows that a query of this mode could not follow, as Spark would when it starts."""
    # Not in the public interface: who only asks is not provided for.
    jvm = spark._jvm
    assert jvm is not None
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    modes = jvm.org.apache.spark.sql.streaming.OutputMode
    plan = rows._jdf.queryExecution().analyzed()
    checker.checkForStreaming(plan, getattr(modes, mode.title())())
