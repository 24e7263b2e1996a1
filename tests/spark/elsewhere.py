"""What a job does that runs on a cluster, or on a Connect server: it writes, reads and copies.

python -m tests.spark.elsewhere URL BOOTSTRAP FROM TO DIRECTORY
"""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

from strom.spark import values
from strom.spark.session import open_session
from tests.spark import starting

ROWS = 2000
#: Where it says how many rows it read, and on how many executors.
REPORT = "report"
EXECUTORS = 2
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.executor.extraJavaOptions": starting.java_options(),
    # Nothing begins before all executors are there.
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
    "spark.cores.max": str(EXECUTORS),
}


def open_at(url):
    """A session on the cluster, or on the server of Connect, that the address names."""
    if url.startswith("sc://"):
        return SparkSession.builder.remote(url).getOrCreate()
    return open_session("elsewhere", url, settings=SETTINGS)


def run(url, bootstrap, source, target, directory):
    spark = open_at(url)
    where = {"kafka.bootstrap.servers": bootstrap}
    rows = spark.range(0, ROWS, 1, 4).selectExpr("cast(id as string) as value")
    rows.write.format("strom").mode("append").options(**where).option("topic", source).save()
    reading = {**where, "subscribe": source, "startingOffsets": "earliest"}
    count = spark.read.format("strom").options(**reading).load().count()
    # No number is an object of JSON; the workers find that out, and say it of each.
    records = spark.read.format("strom").options(**reading).load()
    count = min(count, values.json("id int").dead_letters(records).count())
    stream = spark.readStream.format("strom").options(**reading, maxOffsetsPerTrigger=ROWS // 2)
    query = (
        stream.load()
        .select("key", "value")
        .writeStream.format("strom")
        .options(**where, topic=target, checkpointLocation=f"{directory}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    (Path(directory) / REPORT).write_text(f"{count} {executors_of(spark, url)}")
    spark.stop()


def executors_of(spark, url):
    """How many executors there are; a client of Connect does not know."""
    if url.startswith("sc://"):
        return 0
    # Those that hold blocks are the executors and the driver.
    return spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1


if __name__ == "__main__":
    run(*sys.argv[1:])
