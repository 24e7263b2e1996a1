"""quorum-state: Kafka's file, byte for byte."""

from uuid import UUID

import pytest

from strom.raft.election import ElectionState, read_election, write_election
from strom.raft.voters import ReplicaKey

#: Written by an Apache Kafka 4.3.1.
FROM_KAFKA = (
    b'{"leaderId":1,"leaderEpoch":1,"votedId":-1,'
    b'"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
)


def test_what_kafka_wrote_is_read_and_written_again():
    state = read_election(FROM_KAFKA)
    assert state == ElectionState(epoch=1, leader_id=1)
    assert write_election(state) == FROM_KAFKA


def test_a_vote_is_kept_with_the_directory_it_was_given_to():
    state = ElectionState(4, -1, ReplicaKey(2, UUID(int=2**127 + 5)))
    assert read_election(write_election(state)) == state


def test_the_older_form_without_directories_is_read():
    old = (
        b'{"clusterId":"","leaderId":-1,"leaderEpoch":3,"votedId":2,"appliedOffset":0,'
        b'"currentVoters":[{"voterId":2}],"data_version":0}'
    )
    assert read_election(old) == ElectionState(3, -1, ReplicaKey(2, UUID(int=0)))


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"votedId":"x"}', FROM_KAFKA[:-9]])
def test_a_damaged_file_is_told_from_an_absent_vote(data):
    with pytest.raises(ValueError, match="quorum-state cannot be read"):
        read_election(data)
