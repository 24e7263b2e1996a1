"""A node that is a cluster of its own has internal topics of one replica, unless told otherwise."""

import pytest

from strom.metadata.settings.definition import SettingsError
from strom.metadata.settings.load import load

FACTORS = ("offsets.topic.replication.factor", "transaction.state.log.replication.factor")
IN_SYNC = "transaction.state.log.min.isr"


def values(**static):
    named = {name.replace("_", "."): value for name, value in static.items()}
    settings = load(named).settings
    return [settings.number(name) for name in (*FACTORS, IN_SYNC)]


def test_alone_one_replica_is_enough():
    assert values() == [1, 1, 1]
    assert values(controller_quorum_voters="") == [1, 1, 1]


def test_who_names_its_quorum_gets_kafkas_defaults():
    assert values(controller_quorum_voters="1@localhost:9093") == [3, 3, 2]


def test_what_the_file_says_counts():
    assert values(offsets_topic_replication_factor="2") == [2, 1, 1]


def test_a_codec_that_does_not_exist_is_refused_at_the_start():
    load({"offsets.topic.compression.codec": "4"})
    with pytest.raises(SettingsError):
        load({"offsets.topic.compression.codec": "5"})
