"""Who is compared with whom: two brokers, or two connectors at one broker.

A contest names its sides, ours first, and makes them ready for a group of cases.
"""

from contextlib import contextmanager

from bench import spark
from bench.cases import SELF_STARTED, SETTINGS, warm_up
from bench.sides import SIDES
from bench.stage import connector_jars
from tests import nodes


class OfBrokers:
    """Strom and Apache Kafka, fresh for each group: one works, the other idles."""

    names = tuple(side.name for side in SIDES)

    def missing(self):
        """Why it cannot be held here, if so."""
        return nodes.kcat_missing()

    @contextmanager
    def sides(self, group, effort, alone):
        """Both sides, ready for the cases of the group."""
        sides = [make(SETTINGS.get(group, {})) for make in SIDES]
        try:
            if group not in SELF_STARTED:
                for side in sides:
                    with alone():
                        side.start()
                        warm_up(side, effort, group)
            yield sides
        finally:
            for side in sides:
                side.remove()

    def close(self):
        """Nothing is left."""


class OfConnectors:
    """Two connectors, on a stage that stays for all rounds."""

    names = spark.OWN, spark.PEER

    def __init__(self):
        self._ground = None

    def missing(self):
        """Why it cannot be held here, if so."""
        return None if connector_jars() else "Spark's own connector is not there: make tools"

    @contextmanager
    def sides(self, _group, effort, alone):
        """Both sides, warmed up the first time."""
        if self._ground is None:
            with alone():
                self._ground = spark.Ground(effort)
        yield self._ground.connectors

    def close(self):
        """End what was started."""
        if self._ground is not None:
            self._ground.stage.close()


BROKERS, CONNECTORS = OfBrokers(), OfConnectors()


def contest_of(case):
    """The contest to which the case belongs."""
    return CONNECTORS if case.group == "spark" else BROKERS
