"""Whose offsets a consumer group takes: commits carry the member's epoch."""

from functools import partial

import pytest
from immutables import Map

from strom.groups.consumer.commits import check_commit, check_fetch
from strom.groups.consumer.group import ConsumerGroup
from strom.groups.consumer.member import Member
from strom.groups.records import ClassicMemberMetadata
from strom.wire.errors import ErrorCode, KafkaError
from tests.groups.consumer_table import topic_id

T = topic_id("t")


@pytest.fixture
def group():
    """A member at epoch 2 that has had partition 0 since epoch 1, 1 since 2, and gives 2 up."""
    member = Member("a", epoch=2, assigned={T: {0: 1, 1: 2}}, revoking={T: {2: 1}})
    return ConsumerGroup("g", members=Map({"a": member}))


def code(ask, *args, **kwargs):
    with pytest.raises(KafkaError) as refused:
        ask(*args, **kwargs)
    return refused.value.code


def test_a_member_commits_in_its_epoch(group):
    assert check_commit(group, "a", None, 2, version=9) is None


def test_who_is_no_member_commits_nothing(group):
    assert code(check_commit, group, "z", None, 2, version=9) is ErrorCode.UNKNOWN_MEMBER_ID
    assert code(check_commit, group, "", None, -1, version=9) is ErrorCode.UNKNOWN_MEMBER_ID


def test_anybody_commits_to_a_group_without_members():
    assert check_commit(ConsumerGroup("g"), "", None, -1, version=9) is None
    refused = code(check_commit, ConsumerGroup("g"), "a", None, 1, version=9)
    assert refused is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_epoch_that_is_to_come_is_refused(group):
    assert code(check_commit, group, "a", None, 3, version=9) is ErrorCode.STALE_MEMBER_EPOCH


def test_a_late_commit_counts_for_what_the_member_has_had_since(group):
    late = check_commit(group, "a", None, 1, version=9)
    late.check("t", T, 0)
    late.check("t", T, 2)


def test_a_late_commit_is_refused_for_what_others_may_have_had_meanwhile(group):
    late = check_commit(group, "a", None, 1, version=9)
    for topic, partition in ((T, 1), (T, 3), (topic_id("u"), 0)):
        assert code(late.check, "name", topic, partition) is ErrorCode.STALE_MEMBER_EPOCH


def test_members_of_the_consumer_protocol_use_a_version_that_has_epochs(group):
    assert code(check_commit, group, "a", None, 2, version=8) is ErrorCode.UNSUPPORTED_VERSION
    assert check_commit(group, "a", None, 2, version=3, transactional=True) is None


def test_transactions_hear_of_generations(group):
    """TXN-07: a producer takes STALE_MEMBER_EPOCH for a fatal error, so it is not told it."""
    ask = partial(check_commit, group, "a", None, version=5, transactional=True)
    assert ask(2) is None
    assert code(ask, 3) is ErrorCode.ILLEGAL_GENERATION
    late = ask(1)
    late.check("t", T, 0)
    for topic, partition in ((T, 1), (T, 3), (topic_id("u"), 0)):
        assert code(late.check, "name", topic, partition) is ErrorCode.ILLEGAL_GENERATION


def test_old_clients_do_not_say_who_they_are_in_a_transaction(group):
    assert check_commit(group, "", None, -1, version=2, transactional=True) is None
    refused = code(check_commit, group, "z", None, -1, version=5, transactional=True)
    assert refused is ErrorCode.UNKNOWN_MEMBER_ID


def test_members_of_the_classic_protocol_hear_of_generations(group):
    classic = ClassicMemberMetadata(session_timeout_ms=1, supported_protocols=())
    member = group.members["a"]._replace(classic=classic)
    group = group._replace(members=group.members.set("a", member))
    assert check_commit(group, "a", None, 2, version=5) is None
    assert code(check_commit, group, "a", None, 3, version=5) is ErrorCode.ILLEGAL_GENERATION
    late = check_commit(group, "a", None, 1, version=5)
    assert code(late.check, "t", T, 3) is ErrorCode.ILLEGAL_GENERATION
    assert code(check_fetch, group, "a", 3) is ErrorCode.ILLEGAL_GENERATION


def test_offsets_are_told_to_members_of_the_epoch_and_to_who_is_none(group):
    check_fetch(group, None, -1)
    check_fetch(group, "a", 2)
    assert code(check_fetch, group, "a", 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert code(check_fetch, group, "z", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    # Who names a member is taken at its word, whatever the epoch.
    assert code(check_fetch, group, "a", -1) is ErrorCode.STALE_MEMBER_EPOCH
    assert code(check_fetch, group, "z", -1) is ErrorCode.UNKNOWN_MEMBER_ID
