"""The scraper's jobs as DAGs of Apache Airflow, one for each job, by the job's own schedule.

Airflow reads this file; it needs the repository on its PYTHONPATH, and in the environment
`STROM_BOOTSTRAP`, `SCRAPER_SITE` (the site's address) and, for a broker's own metrics,
`SCRAPER_METRICS`. `pools.json` is the pool that has them run one after the other: a host is asked
by one at a time, and the start of a task takes longer than any host's pace.

What a run does is what APScheduler's does (`scraper/once.py`). A second run of the same hour, a run
that is repeated by hand, or one that was killed half-way makes no second fact: the topics know.
"""

import os
from datetime import UTC, datetime, timedelta
from random import Random

from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import DAG

from examples.final_project.scraper import jobs, once
from examples.final_project.scraper.sources import brokers, site

POOL = "scraper"
RUN_SECONDS_MAX = 300


def the_jobs() -> list[jobs.Job]:
    """Return the jobs for the addresses in the environment."""
    found = site.of(os.environ.get("SCRAPER_SITE", "http://127.0.0.1:8080"))
    if metrics := os.environ.get("SCRAPER_METRICS"):
        found.append(brokers.of("broker-1", metrics))
    return found


def schedule(when: jobs.Every | jobs.Cron) -> str | timedelta:
    """Return Airflow's schedule for when a job is due."""
    match when:
        case jobs.Every(seconds):
            return timedelta(seconds=seconds)
        case jobs.Cron(line):
            return line


def scrape(name: str) -> dict[str, int]:
    """Run the job of that name; return how often each thing happened."""
    job = next(job for job in the_jobs() if job.name == name)
    return once.run(job, os.environ.get("STROM_BOOTSTRAP", "localhost:9092"), Random())


def dag_of(job: jobs.Job) -> DAG:
    """Return the DAG of a job: one task, one run at a time, none for the time before."""
    with DAG(
        f"scrape-{job.name}",
        description=f"{job.url} to the topic {job.topic}",
        schedule=schedule(job.when),
        start_date=datetime(2026, 1, 1, tzinfo=UTC),
        catchup=False,
        max_active_runs=1,
        tags=["final-project"],
    ) as dag:
        PythonOperator(
            task_id="scrape",
            python_callable=scrape,
            op_args=[job.name],
            pool=POOL,
            execution_timeout=timedelta(seconds=RUN_SECONDS_MAX),
        )
    return dag


for _job in the_jobs():
    globals()[f"scrape_{_job.name}"] = dag_of(_job)
