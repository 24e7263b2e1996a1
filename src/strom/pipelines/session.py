"""The Spark session of a pipeline that runs as a command.

What Spark logs goes to `spark.log` in the pipeline's directory: a terminal shows the pipeline.
"""

import os
import signal
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from strom.pipelines.declaration import Pipeline
from strom.pipelines.explaining import explain
from strom.pipelines.failure import PipelineError
from strom.spark.session import open_session

#: A few partitions for the state: each is a task and a file in every micro-batch. Spark's 200 are
#: for clusters. A query keeps the number that it began with.
DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
}
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
LOGGING = """\
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {path}/spark.log
appender.file.filePattern = {path}/spark.log.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd HH:mm:ss}} %p %c{{1}}: %m%n%ex
appender.file.policies.type = SizeBasedTriggeringPolicy
appender.file.policies.size = 10MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
"""


def open_session_for(pipeline: Pipeline, directory: Path) -> SparkSession:
    """Return a session with the pipeline's settings."""
    directory = directory.resolve()
    directory.mkdir(parents=True, exist_ok=True)
    logging = directory / "log4j2.properties"
    logging.write_text(LOGGING.format(path=directory))
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    settings = {**DEFAULTS, **pipeline.settings.spark}
    given = settings.get(JAVA_OPTIONS, "")
    settings[JAVA_OPTIONS] = f"-Dlog4j2.configurationFile={logging.as_uri()} {given}".strip()
    # Spark takes Ctrl+C for itself, and would end its jobs under our hands.
    handler = signal.getsignal(signal.SIGINT)
    try:
        return open_session(pipeline.name, pipeline.settings.master, settings=settings)
    except PySparkException as error:
        raise PipelineError(
            f"Spark did not start: {explain(str(error))}; it needs Java 17 or newer (JAVA_HOME), "
            f"and may have said more in {directory / 'spark.log'}"
        ) from None
    finally:
        signal.signal(signal.SIGINT, handler)
