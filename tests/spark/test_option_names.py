"""Every option of Spark's connector is honoured, or has no effect and says so, or is refused."""

import pytest

from strom.spark.failure import OptionError
from strom.spark.option_names import (
    CONSUMER_SETTINGS,
    REFUSED_SETTINGS,
    SOURCE_OPTIONS,
    WITHOUT_EFFECT,
    check_option,
)


@pytest.mark.parametrize("name", SOURCE_OPTIONS)
def test_str_02_every_option_of_the_source_is_taken(name):
    assert check_option(name.lower()) is None


@pytest.mark.parametrize("name", CONSUMER_SETTINGS)
def test_settings_that_mean_the_same_are_taken(name):
    assert check_option(f"kafka.{name}") is None


@pytest.mark.parametrize("name", WITHOUT_EFFECT)
def test_what_has_nothing_to_act_upon_says_why(name):
    assert check_option(f"kafka.{name}") == WITHOUT_EFFECT[name]


@pytest.mark.parametrize("name", REFUSED_SETTINGS)
def test_what_cannot_be_had_is_refused_by_its_name(name):
    with pytest.raises(OptionError, match=f"'kafka.{name}' is not supported"):
        check_option(f"kafka.{name}")


@pytest.mark.parametrize("name", ["kafka.ssl.keystore.location", "kafka.sasl.mechanism"])
def test_whole_families_are_refused(name):
    with pytest.raises(OptionError, match="PLAINTEXT"):
        check_option(name)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("startingoffset", "startingOffsets"),
        ("maxoffsetpertrigger", "maxOffsetsPerTrigger"),
        ("kafka.bootstrap.server", "kafka.bootstrap.servers"),
        ("bootstrap.servers", "kafka.bootstrap.servers"),
        ("kafka.isolation.levle", "kafka.isolation.level"),
    ],
)
def test_an_unknown_name_is_told_the_nearest(wrong, right):
    with pytest.raises(OptionError, match=f"Did you mean '{right}'"):
        check_option(wrong)


def test_a_name_like_no_other_is_refused_without_a_guess():
    with pytest.raises(OptionError, match=r"Unknown option 'xyzzy'\.$"):
        check_option("xyzzy")


def test_options_that_somebody_else_honours_are_left_to_them():
    assert check_option("topic", others=frozenset({"topic"})) is None
