"""A node that is a cluster of its own has internal topics of one replica, unless told otherwise."""

import pytest

from strom.metadata.settings.catalogue import Kind, Resource
from strom.metadata.settings.definition import SettingsError
from strom.metadata.settings.describe import FROM_DEFAULT, FROM_FILE, describe
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


@pytest.mark.parametrize(
    "quorum",
    [
        {"controller_quorum_voters": "1@localhost:9093"},
        {"controller_quorum_bootstrap_servers": "localhost:9093"},
        {"controller_quorum_voters": " 1@a:1 ", "controller_quorum_bootstrap_servers": "a:1"},
    ],
)
def test_who_names_itself_is_alone(quorum):
    """As Kafka's own file for a single node does: nobody else is there to hold a replica."""
    assert values(**quorum) == [1, 1, 1]


def test_who_names_other_nodes_gets_kafkas_defaults():
    assert values(controller_quorum_bootstrap_servers="a:9093,b:9093,c:9093") == [3, 3, 2]


def test_what_the_file_says_counts():
    assert values(offsets_topic_replication_factor="2") == [2, 1, 1]


def test_what_nobody_wrote_is_described_as_a_default():
    """BRK-21: not as the file's, also after a change at run time."""
    settings = load({"transaction.state.log.min.isr": "1"}).settings
    for each in (settings, settings.with_dynamic({}, {"max.connections": "5"})):
        described = describe(Resource(Kind.BROKER, "1"), each, {}, {*FACTORS, IN_SYNC})
        told = {one.name: (one.value, one.source, one.synonyms[-1]) for one in described}
        assert told == {
            FACTORS[0]: ("1", FROM_DEFAULT, (FACTORS[0], "1", FROM_DEFAULT)),
            FACTORS[1]: ("1", FROM_DEFAULT, (FACTORS[1], "1", FROM_DEFAULT)),
            IN_SYNC: ("1", FROM_FILE, (IN_SYNC, "1", FROM_DEFAULT)),
        }


def test_a_codec_that_does_not_exist_is_refused_at_the_start():
    load({"offsets.topic.compression.codec": "4"})
    with pytest.raises(SettingsError):
        load({"offsets.topic.compression.codec": "5"})
