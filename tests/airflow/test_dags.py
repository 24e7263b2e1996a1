"""The scraper's jobs in real Apache Airflow, with a real site and a real broker (PRJ-02).

`make test-airflow` sets Airflow up and says where it is; without that there is nothing to run.
"""

import json
import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from examples.final_project.scraper import topics
from examples.final_project.site import flights
from examples.final_project.site.app import Fault, Site
from examples.final_project.site.serving import served
from strom.broker.host import wall_clock_ms
from tests.examples.test_scraper import committed, names

ROOT = Path(__file__).parent.parent.parent
AIRFLOW = os.environ.get("STROM_AIRFLOW")
PATIENCE_SECONDS = 240
SEED = 7

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(AIRFLOW is None, reason="Airflow: make test-airflow sets it up"),
]


class Airflow:
    """Apache Airflow with a database of its own, and the DAGs of the final project."""

    def __init__(self, home, **environment):
        dags = ROOT / "examples/final_project/dags"
        self.pools = dags / "pools.json"
        self._environment = {
            **os.environ,
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
            "PYTHONPATH": str(ROOT),
            **environment,
        }

    def command(self, *words):
        return self._run(f"{AIRFLOW}/bin/airflow", *words)

    def play(self, *dags):
        out = self._run(f"{AIRFLOW}/bin/python", str(Path(__file__).with_name("play.py")), *dags)
        return json.loads(out.splitlines()[-1])

    def _run(self, *words):
        ended = subprocess.run(
            words,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout


@pytest.fixture
def faults():
    """What goes wrong, by the number of the request."""
    return {}


@pytest.fixture
def broker(strom_brokers):
    return strom_brokers({"strom.http.port": "0"})


@pytest.fixture
def airflow(tmp_path, broker, faults):
    with served(Site(SEED, wall_clock_ms, faults.get)) as address:
        made = Airflow(
            tmp_path,
            STROM_BOOTSTRAP=broker.bootstrap,
            SCRAPER_SITE=address,
            SCRAPER_METRICS=broker.metrics_url,
        )
        made.command("db", "migrate")
        yield made


def test_prj_02_airflow_runs_the_same_jobs_and_a_second_run_makes_no_second_fact(
    airflow, broker, faults
):
    faults[1] = Fault.UNAVAILABLE
    assert "1 pool" in airflow.command("pools", "import", str(airflow.pools))
    jobs = [f"scrape-{job}" for job in ("rockets", "astronauts", "flights", "telemetry")]
    jobs.append("scrape-broker-1")
    told = airflow.play(*jobs, *jobs)
    assert told["errors"] == {}
    assert sorted(told["loaded"]) == sorted(jobs)
    assert told["loaded"]["scrape-rockets"] == "* * * * *"
    assert told["loaded"]["scrape-flights"] == "0:00:05"
    assert told["runs"] == [[job, "success"] for job in jobs + jobs]
    facts = {topic: names(committed(broker.bootstrap, topic)) for topic in topics.SETTINGS}
    assert set(facts["rockets"].values()) == {1}
    assert len(facts["rockets"]) == len(flights.ROCKETS)
    assert set(facts["astronauts"].values()) == {1}
    assert set(facts["telemetry"].values()) == {1}
    assert facts["flights"]
    assert facts["broker-metrics"]
    assert facts["dead-letters"] == Counter()


def test_prj_02_a_job_that_comes_to_nothing_is_a_failed_run(airflow, faults):
    faults.update(dict.fromkeys(range(1, 100), Fault.UNAVAILABLE))
    assert airflow.play("scrape-rockets")["runs"] == [["scrape-rockets", "failed"]]
