"""Incremental fetch sessions (KIP-227): remembered, changed, forgotten, evicted."""

import random

import pytest

from strom.broker.sessions import EVICTION_IDLE_MS, FetchSessions, key_of, took_turn
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic


def request(session_id=0, epoch=0, topics=None, forgotten=None):
    wanted = [
        FetchTopic(name, None, [FetchPartition(index, offset, 1000) for index, offset in places])
        for name, places in (topics or {}).items()
    ]
    gone = [ForgottenTopic(name, None, places) for name, places in (forgotten or {}).items()]
    return FetchRequest(-1, -1, 500, 1, 1 << 20, 0, session_id, epoch, wanted, gone, "")


def names(resolved):
    return [key_of(each) for each in resolved.wanted]


@pytest.fixture
def sessions():
    return FetchSessions(random.Random(1), 2)


def resolve(sessions, asked, now_ms=0, *, by_id=False):
    return sessions.resolve(asked, by_id=by_id, now_ms=now_ms)


def test_a_request_without_session_is_served_and_forgotten(sessions):
    resolved = resolve(sessions, request(epoch=-1, topics={"a": [(0, 5)]}))
    assert resolved.session is None
    assert names(resolved) == [("a", 0)]
    assert len(sessions) == 0


def test_a_session_remembers_what_was_asked(sessions):
    opened = resolve(sessions, request(topics={"a": [(0, 5), (1, 6)]})).session
    again = resolve(sessions, request(opened.session_id, 1))
    assert again.incremental
    assert names(again) == [("a", 0), ("a", 1)]


def test_partitions_are_changed_added_and_forgotten(sessions):
    opened = resolve(sessions, request(topics={"a": [(0, 5), (1, 6)]})).session
    changed = resolve(
        sessions,
        request(opened.session_id, 1, topics={"a": [(0, 9)], "b": [(0, 0)]}, forgotten={"a": [1]}),
    )
    assert names(changed) == [("a", 0), ("b", 0)]
    assert [each.place.offset for each in changed.wanted] == [9, 0]
    readded = resolve(sessions, request(opened.session_id, 2, topics={"a": [(1, 3)]}))
    assert names(readded) == [("a", 0), ("b", 0), ("a", 1)]


def test_what_is_asked_for_and_forgotten_at_once_is_forgotten(sessions):
    opened = resolve(sessions, request(topics={"a": [(0, 5)]})).session
    changed = resolve(
        sessions,
        request(opened.session_id, 1, topics={"a": [(0, 9), (1, 0)]}, forgotten={"a": [0, 1]}),
    )
    assert names(changed) == []


def test_an_unknown_session_is_said_to_be_unknown(sessions):
    with pytest.raises(KafkaError) as refused:
        resolve(sessions, request(77, 1))
    assert refused.value.code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_an_epoch_out_of_order_is_refused(sessions):
    opened = resolve(sessions, request(topics={"a": [(0, 5)]})).session
    with pytest.raises(KafkaError) as refused:
        resolve(sessions, request(opened.session_id, 2))
    assert refused.value.code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_names_and_ids_do_not_mix_in_a_session(sessions):
    opened = resolve(sessions, request(topics={"a": [(0, 5)]})).session
    with pytest.raises(KafkaError) as refused:
        resolve(sessions, request(opened.session_id, 1), by_id=True)
    assert refused.value.code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_the_epoch_wraps_round_to_one(sessions):
    opened = resolve(sessions, request(topics={"a": [(0, 5)]})).session
    opened.epoch = 2**31 - 1
    resolve(sessions, request(opened.session_id, 2**31 - 1))
    assert opened.epoch == 1


def test_the_final_epoch_closes_the_session(sessions):
    opened = resolve(sessions, request(topics={"a": [(0, 5)]})).session
    resolve(sessions, request(opened.session_id, -1))
    assert len(sessions) == 0


def test_a_full_cache_serves_without_a_session_and_evicts_the_idle(sessions):
    for _ in range(2):
        assert resolve(sessions, request(topics={"a": [(0, 5)]})).session is not None
    assert resolve(sessions, request(topics={"a": [(0, 5)]})).session is None
    later = EVICTION_IDLE_MS + 1
    assert resolve(sessions, request(topics={"a": [(0, 5)]}), later).session is not None
    assert len(sessions) == 2


def test_who_was_served_goes_to_the_end_of_the_queue(sessions):
    opened = resolve(sessions, request(topics={"a": [(0, 0), (1, 0), (2, 0)]})).session
    took_turn(opened, [opened.wanted["a", 0]])
    assert list(opened.wanted) == [("a", 1), ("a", 2), ("a", 0)]


def test_a_session_in_use_makes_room_for_a_larger_one_only_when_it_is_old(sessions):
    opened = [resolve(sessions, request(topics={"a": [(0, 5)]})).session for _ in range(2)]
    later = EVICTION_IDLE_MS + 1
    for each in opened:
        resolve(sessions, request(each.session_id, 1), later)
    assert resolve(sessions, request(topics={"b": [(0, 5)]}), later).session is None
    larger = request(topics={"b": [(0, 5), (1, 5)]})
    first = resolve(sessions, larger, later).session
    assert first is not None
    second = resolve(sessions, larger, later).session
    assert second is not None
    # Both are young now, however small they are.
    assert (
        resolve(sessions, request(topics={"c": [(n, 0) for n in range(9)]}), later).session is None
    )


def test_a_session_without_partitions_is_over(sessions):
    opened = resolve(sessions, request(topics={"a": [(0, 5)]})).session
    left = resolve(sessions, request(opened.session_id, 1, forgotten={"a": [0]}))
    assert (left.session, names(left), len(sessions)) == (None, [], 0)


def test_a_small_young_session_does_not_protect_a_larger_old_one(sessions):
    old = resolve(sessions, request(topics={"a": [(0, 5), (1, 5)]})).session
    later = EVICTION_IDLE_MS + 1
    resolve(sessions, request(old.session_id, 1), later)
    assert resolve(sessions, request(topics={"b": [(0, 5)]}), later).session is not None
    larger = request(topics={"c": [(number, 0) for number in range(3)]})
    assert resolve(sessions, larger, later).session is not None
    with pytest.raises(KafkaError):
        resolve(sessions, request(old.session_id, 2), later)


def test_an_epoch_out_of_order_is_told_before_a_mixture_of_names_and_ids(sessions):
    opened = resolve(sessions, request(topics={"a": [(0, 5)]})).session
    with pytest.raises(KafkaError) as refused:
        resolve(sessions, request(opened.session_id, 9), by_id=True)
    assert refused.value.code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
