# Compiled by mypyc.
"""Incremental fetch sessions (KIP-227): what a fetcher wants, remembered between its requests.

    request epoch   session id   meaning
    -1              any          no session; one of that id is closed
     0              any          a full request that opens a new session, replacing the named one
     n > 0          known        changes against what is remembered; n must be the epoch expected

After an answered request the session expects its epoch plus one (1 again behind 2^31 - 1). An
answer within a session leaves out partitions that have nothing new to say. A session from which the
last partition is taken is closed.

There are at most `max.incremental.fetch.session.cache.slots` sessions. A new one takes the
place of the longest unused one that has been idle for two minutes, or of a smaller one that is
old enough; otherwise its owner is served without a session.
"""

import random
from collections.abc import Iterable
from typing import Final
from uuid import UUID

from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.fetch import FetchedPartition, FetchPartition, FetchRequest

NO_SESSION: Final = 0
FINAL_EPOCH: Final = -1
INITIAL_EPOCH: Final = 0
EPOCH_MAX: Final = 2**31 - 1
EVICTION_IDLE_MS: Final = 120_000

#: A topic's name, or its id as a number (which is hashed faster), and a partition's.
Key = tuple[str | int, int]


class Wanted:
    """One partition that a fetcher wants, and what it was last told of it."""

    __slots__ = ("name", "place", "sent", "topic_id")

    def __init__(self, name: str | None, topic_id: UUID | None, place: FetchPartition) -> None:
        self.name = name
        self.topic_id = topic_id
        self.place = place
        #: High watermark and start offset as last sent; None if it must be told in any case.
        self.sent: tuple[int, int] | None = None

    def has_news(self, fetched: FetchedPartition) -> bool:
        """Whether an incremental answer must mention the partition."""
        return (
            fetched.error_code != ErrorCode.NONE
            or (fetched.records is not None and fetched.records.size > 0)
            or fetched.preferred_replica != -1
            or fetched.diverging is not None
            or self.sent != (fetched.high_watermark, fetched.log_start_offset)
        )


class Session:
    """What one fetcher wants, in the order in which its partitions take their turns."""

    __slots__ = ("by_id", "created_ms", "epoch", "session_id", "used_ms", "wanted")

    def __init__(self, session_id: int, *, by_id: bool, now_ms: int) -> None:
        self.session_id = session_id
        self.by_id = by_id
        self.epoch = 1
        self.created_ms = self.used_ms = now_ms
        self.wanted: dict[Key, Wanted] = {}


class Resolved:
    """The partitions to serve, and the session that the answer belongs to, if any."""

    __slots__ = ("incremental", "session", "wanted")

    def __init__(self, wanted: list[Wanted], session: Session | None, *, incremental: bool) -> None:
        self.wanted = wanted
        self.session = session
        #: Only what is new need be told.
        self.incremental = incremental


class FetchSessions:
    """All sessions of one broker."""

    def __init__(self, rng: random.Random, slots_max: int) -> None:
        self._rng = rng
        self._slots_max = slots_max
        self._sessions: dict[int, Session] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def resolve(self, request: FetchRequest, *, by_id: bool, now_ms: int) -> Resolved:
        """Find out what a request wants; raise a KafkaError if its session cannot say."""
        if request.session_epoch == FINAL_EPOCH:
            self._sessions.pop(request.session_id, None)
            return Resolved([*wanted_by(request).values()], None, incremental=False)
        if request.session_epoch == INITIAL_EPOCH:
            self._sessions.pop(request.session_id, None)
            wanted = wanted_by(request)
            session = self._open(len(wanted), by_id=by_id, now_ms=now_ms)
            if session is not None:
                session.wanted = wanted
            return Resolved(list(wanted.values()), session, incremental=False)
        session = self._existing(request, by_id=by_id)
        session.used_ms = now_ms
        session.epoch = 1 if session.epoch == EPOCH_MAX else session.epoch + 1
        change(session, request)
        if not session.wanted:
            del self._sessions[session.session_id]
            return Resolved([], None, incremental=False)
        return Resolved(list(session.wanted.values()), session, incremental=True)

    def _existing(self, request: FetchRequest, *, by_id: bool) -> Session:
        session = self._sessions.get(request.session_id)
        if session is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if request.session_epoch != session.epoch:
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.by_id is not by_id:
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        return session

    def _open(self, size: int, *, by_id: bool, now_ms: int) -> Session | None:
        if len(self._sessions) >= self._slots_max and not self._evict(size, now_ms):
            return None
        session_id = self._rng.randrange(1, 2**31)
        while session_id in self._sessions:
            session_id = self._rng.randrange(1, 2**31)
        session = Session(session_id, by_id=by_id, now_ms=now_ms)
        self._sessions[session_id] = session
        return session

    def _evict(self, size: int, now_ms: int) -> bool:
        """Make room for a session of this size; return whether there was any."""
        if not self._sessions:
            return False
        idle = min(self._sessions.values(), key=lambda each: each.used_ms)
        if now_ms - idle.used_ms > EVICTION_IDLE_MS:
            del self._sessions[idle.session_id]
            return True
        smaller = [
            each
            for each in self._sessions.values()
            if len(each.wanted) < size and now_ms - each.created_ms > EVICTION_IDLE_MS
        ]
        if not smaller:
            return False
        del self._sessions[min(smaller, key=lambda each: len(each.wanted)).session_id]
        return True


def change(session: Session, request: FetchRequest) -> None:
    """Apply an incremental request: partitions to add, to ask differently, then to forget.

    One that is in both lists is forgotten, as in Kafka.
    """
    for asked in request.topics:
        which = which_topic(asked.name, asked.topic_id)
        for place in asked.partitions:
            key = which, place.partition_index
            known = session.wanted.get(key)
            if known is None:
                session.wanted[key] = Wanted(asked.name, asked.topic_id, place)
            else:
                known.place = place
    for topic in request.forgotten:
        which = which_topic(topic.name, topic.topic_id)
        for index in topic.partitions:
            session.wanted.pop((which, index), None)


def took_turn(session: Session, served: Iterable[Wanted]) -> None:
    """Send the partitions that got something to the end, so that all get their turn."""
    for wanted in served:
        key = key_of(wanted)
        if session.wanted.pop(key, None) is not None:
            session.wanted[key] = wanted


def wanted_by(request: FetchRequest) -> dict[Key, Wanted]:
    """Return what the request itself asks for.

    Of a partition that is named twice the last counts, in the place of the first, as in Kafka.
    """
    return {
        (which, place.partition_index): Wanted(topic.name, topic.topic_id, place)
        for topic in request.topics
        for which in (which_topic(topic.name, topic.topic_id),)
        for place in topic.partitions
    }


def key_of(wanted: Wanted) -> Key:
    """Return what tells the partition from others in a session."""
    return which_topic(wanted.name, wanted.topic_id), wanted.place.partition_index


def which_topic(name: str | None, topic_id: UUID | None) -> str | int:
    """Return what tells the topic from others."""
    return topic_id.int if topic_id is not None else name or ""
