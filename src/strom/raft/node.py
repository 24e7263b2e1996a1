"""One voter of the quorum: who leads, and how far the log is committed. No clock, no network.

    UNATTACHED ──┐                                          a higher epoch, from whatever state
    FOLLOWER ────┤ time is up                                        ──▶ UNATTACHED or FOLLOWER
                 ▼
             PROSPECTIVE ──majority would vote──▶ CANDIDATE ──majority voted──▶ LEADER
                 ▲                                   │
                 └──────────── time is up ───────────┘

A prospective voter asks first whether it *would* be voted for (KIP-996): nobody's epoch rises
for that, so a voter that was cut off for a while disturbs nobody, and a voter may ask as soon as
it starts. The only voter of a quorum finds itself a majority and leads at once.

Every call returns Effects. The caller writes `save` to disk before it sends `send`, and calls
`on_time` at `wake_ms`. An entry is committed when a majority has *flushed* it and it, or
one behind it, is of the leader's own epoch (Raft §5.4.2).
"""

from dataclasses import dataclass
from enum import Enum, auto
from random import Random
from typing import NamedTuple

from strom.raft.election import NOBODY, ElectionState
from strom.raft.voters import ReplicaKey, Voters

#: `controller.quorum.election.timeout.ms` and `controller.quorum.fetch.timeout.ms`.
ELECTION_TIMEOUT_MS = 1000
FETCH_TIMEOUT_MS = 2000


class Role(Enum):
    """What a voter is at the moment."""

    UNATTACHED = auto()
    FOLLOWER = auto()
    PROSPECTIVE = auto()
    CANDIDATE = auto()
    LEADER = auto()


class LogEnd(NamedTuple):
    """How far a replica's log goes: the larger one knows more."""

    epoch: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class VoteRequest:
    """A voter asks another for its vote, or whether it would give it."""

    target_id: int
    epoch: int
    candidate: ReplicaKey
    log_end: LogEnd
    is_pre_vote: bool


@dataclass(frozen=True, slots=True)
class VoteReply:
    """A voter's answer, with what it knows."""

    voter_id: int
    epoch: int
    leader_id: int
    is_granted: bool
    is_pre_vote: bool


@dataclass(frozen=True, slots=True)
class Effects:
    """What a call obliges the caller to, in this order."""

    save: ElectionState | None
    send: tuple[VoteRequest, ...]
    wake_ms: int | None


class Node:
    """A voter."""

    def __init__(
        self, key: ReplicaKey, voters: Voters, election: ElectionState, log_end: LogEnd, rng: Random
    ) -> None:
        self.key = key
        self.voters = voters
        self.election = election
        self.role = Role.UNATTACHED
        self.high_watermark = 0
        self._rng = rng
        self._log_end = log_end
        self._saved = election
        self._granted: set[int] = set()
        self._epoch_start = 0
        #: As leader: how far each voter has flushed.
        self._flushed: dict[int, int] = {}
        self._wake_ms: int | None = None

    # Time and election.

    def start(self, now_ms: int) -> Effects:
        """Begin: ask whether it would be elected, for asking disturbs nobody."""
        return self._seek_election(now_ms)

    def on_time(self, now_ms: int) -> Effects:
        """Seek an election if nobody was heard of for too long."""
        if self._wake_ms is None or now_ms < self._wake_ms:
            return self._effects()
        return self._seek_election(now_ms)

    def _seek_election(self, now_ms: int) -> Effects:
        if not self.voters.includes(self.key):
            self._wake_ms = None
            return self._effects()
        # The leader that was is kept in mind: where somebody led, the epoch's vote is spent.
        self.role = Role.PROSPECTIVE
        return self._campaign(now_ms)

    def _campaign(self, now_ms: int) -> Effects:
        """Ask for votes, its own first; go on at once with what a majority has already granted."""
        self._granted = {self.key.id}
        self._wake_ms = now_ms + ELECTION_TIMEOUT_MS + self._rng.randrange(ELECTION_TIMEOUT_MS)
        if self.voters.is_majority(self._granted):
            return self._proceed(now_ms)
        return self._effects(
            tuple(
                VoteRequest(
                    each,
                    self.election.epoch,
                    self.key,
                    self._log_end,
                    self.role is Role.PROSPECTIVE,
                )
                for each in self.voters.ids
                if each != self.key.id
            )
        )

    def _proceed(self, now_ms: int) -> Effects:
        if self.role is Role.PROSPECTIVE:
            self.role = Role.CANDIDATE
            self.election = ElectionState(self.election.epoch + 1, NOBODY, self.key)
            return self._campaign(now_ms)
        self.role = Role.LEADER
        # As in Kafka's file: who leads has need of no vote.
        self.election = ElectionState(self.election.epoch, self.key.id)
        self._epoch_start = self._log_end.end_offset
        self._flushed = {}
        self._wake_ms = None
        return self._effects()

    @property
    def granting_ids(self) -> tuple[int, ...]:
        """Who voted for this leader."""
        return tuple(sorted(self._granted))

    # What other voters say.

    def on_vote_request(self, request: VoteRequest, now_ms: int) -> tuple[VoteReply, Effects]:
        """Give a vote, or say why not; the reply goes out after what the effects say."""
        if request.epoch > self.election.epoch:
            self._fall_back(ElectionState(request.epoch), now_ms)
        is_granted = request.epoch == self.election.epoch and self._would_vote(request)
        if is_granted and not request.is_pre_vote:
            self.election = ElectionState(self.election.epoch, NOBODY, request.candidate)
            self._fall_back(self.election, now_ms)
        election = self.election
        reply = VoteReply(
            self.key.id, election.epoch, election.leader_id, is_granted, request.is_pre_vote
        )
        return reply, self._effects()

    def _would_vote(self, request: VoteRequest) -> bool:
        if request.log_end < self._log_end:
            return False
        if request.is_pre_vote:
            # Who hears from a leader sees no need for an election.
            return self.role not in (Role.LEADER, Role.FOLLOWER)
        voted = self.election.voted
        return self.election.leader_id == NOBODY and voted in (None, request.candidate)

    def on_vote_reply(self, reply: VoteReply, now_ms: int) -> Effects:
        """Count the vote; a majority makes a candidate, or a leader."""
        if reply.epoch > self.election.epoch:
            self._fall_back(ElectionState(reply.epoch, reply.leader_id), now_ms)
            return self._effects()
        asked = Role.PROSPECTIVE if reply.is_pre_vote else Role.CANDIDATE
        if reply.epoch < self.election.epoch or self.role is not asked or not reply.is_granted:
            return self._effects()
        self._granted.add(reply.voter_id)
        if self.voters.is_majority(self._granted):
            return self._proceed(now_ms)
        return self._effects()

    def on_leader(self, epoch: int, leader_id: int, now_ms: int) -> Effects:
        """Follow the leader of this epoch, or of a later one than known."""
        if epoch >= self.election.epoch and self.role is not Role.LEADER:
            self._fall_back(ElectionState(epoch, leader_id), now_ms)
        return self._effects()

    def _fall_back(self, election: ElectionState, now_ms: int) -> None:
        self.election = election
        is_led = election.leader_id != NOBODY
        self.role = Role.FOLLOWER if is_led else Role.UNATTACHED
        timeout_ms = FETCH_TIMEOUT_MS if is_led else ELECTION_TIMEOUT_MS
        self._wake_ms = now_ms + timeout_ms + self._rng.randrange(ELECTION_TIMEOUT_MS)

    # The log.

    def on_appended(self, log_end: LogEnd) -> None:
        """Note how far the own log goes, flushed or not."""
        self._log_end = log_end

    def on_flushed(self, voter_id: int, end_offset: int) -> int:
        """Note how far a voter's log is surely on its disk; return the high watermark."""
        if self.role is Role.LEADER:
            self._flushed[voter_id] = max(end_offset, self._flushed.get(voter_id, 0))
            reached = self.voters.reached_by_majority(self._flushed)
            if reached > self._epoch_start:
                self.high_watermark = max(self.high_watermark, reached)
        return self.high_watermark

    def _effects(self, send: tuple[VoteRequest, ...] = ()) -> Effects:
        save = self.election if self.election != self._saved else None
        self._saved = self.election
        return Effects(save, send, self._wake_ms)
