"""Runs in Airflow's own Python: loads the DAGs as Airflow does, and runs each that is named.

python play.py DAG_ID…: a line of JSON, with what is loaded and how each run ended.
"""

import json
import sys

from airflow.dag_processing.dagbag import DagBag


def main(names):
    bag = DagBag()
    runs = [[name, bag.dags[name].test().state] for name in names]
    loaded = {name: str(dag.schedule) for name, dag in sorted(bag.dags.items())}
    told = {"errors": bag.import_errors, "loaded": loaded, "runs": runs}
    sys.stdout.write(f"\n{json.dumps(told)}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
