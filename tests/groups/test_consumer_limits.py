"""What settings say of consumer groups."""

from strom.groups.consumer.assignors import ASSIGNORS
from strom.groups.consumer.limits import limits_of
from strom.metadata.image import Image
from strom.metadata.settings import BrokerSettings
from strom.metadata.settings.group_rules import ASSIGNOR_NAMES


def limits(static=None, cluster=None):
    return limits_of("g", Image(), BrokerSettings(static or {}, {}, cluster or {}))


def test_every_assignor_that_can_be_named_is_there():
    assert set(ASSIGNOR_NAMES.values()) == set(ASSIGNORS)


def test_an_assignor_goes_by_its_name_or_by_kafkas_class():
    range_class = "org.apache.kafka.coordinator.group.assignor.RangeAssignor"
    named = {"group.consumer.assignors": f"{range_class},uniform,range"}
    assert limits(named).assignors == ("range", "uniform")


def test_what_was_set_under_other_bounds_counts_as_the_nearest_within():
    name = "group.consumer.assignment.interval.ms"
    assert limits(cluster={name: "7000"}).assignment_interval_ms == 7000
    tight = {"group.consumer.max.assignment.interval.ms": "5000"}
    assert limits(tight, {name: "7000"}).assignment_interval_ms == 5000
