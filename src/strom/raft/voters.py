"""Who has a vote in the quorum, and when enough of them agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from strom.wire.messages import kafka_message

if TYPE_CHECKING:
    from kio.schema.k_raft_version_record.v0 import data as version_record
    from kio.schema.voters_record.v0 import data as voters_record
else:
    version_record = kafka_message("k_raft_version_record", "data")
    voters_record = kafka_message("voters_record", "data")

#: The protocol with voters that can change (KIP-853); 0 is the one with a fixed list.
KRAFT_VERSION = 1
KRAFT_VERSION_MIN = 0


class ReplicaKey(NamedTuple):
    """A replica of the metadata log: a node, and the directory it keeps the log in.

    A node that lost its disk comes back with another directory id, and so is another replica:
    it must not vote as if it still had what it once acknowledged.
    """

    id: int
    directory_id: UUID


class Listener(NamedTuple):
    """Where a voter is reached by the other voters."""

    name: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Voters:
    """The voters, by node id."""

    by_id: Mapping[int, tuple[ReplicaKey, tuple[Listener, ...]]]

    @staticmethod
    def of(key: ReplicaKey, listeners: Iterable[Listener]) -> Voters:
        """Return the voters of a quorum that begins with one."""
        return Voters({key.id: (key, tuple(listeners))})

    @property
    def ids(self) -> tuple[int, ...]:
        """The node ids in ascending order."""
        return tuple(sorted(self.by_id))

    def includes(self, key: ReplicaKey) -> bool:
        """Whether this very replica has a vote."""
        found = self.by_id.get(key.id)
        return found is not None and found[0] == key

    def is_majority(self, ids: Set[int]) -> bool:
        """Whether these are more than half of the voters."""
        return 2 * len(ids & self.by_id.keys()) > len(self.by_id)

    def reached_by_majority(self, end_offsets: Mapping[int, int]) -> int:
        """Return the largest offset that more than half of the voters have reached."""
        reached = sorted((end_offsets.get(each, 0) for each in self.by_id), reverse=True)
        return reached[len(reached) // 2]

    # As control records.

    def write(self) -> voters_record.VotersRecord:
        """Return the message that the log and its snapshots keep the voters in."""
        supported = voters_record.KRaftVersionFeature(
            min_supported_version=KRAFT_VERSION_MIN, max_supported_version=KRAFT_VERSION
        )
        voters = tuple(
            voters_record.Voter(
                voter_id=key.id,
                voter_directory_id=key.directory_id,
                endpoints=tuple(
                    voters_record.Endpoint(name=name, host=host, port=port)
                    for name, host, port in listeners
                ),
                k_raft_version_feature=supported,
            )
            for _, (key, listeners) in sorted(self.by_id.items())
        )
        return voters_record.VotersRecord(version=0, voters=voters)

    @staticmethod
    def read(message: voters_record.VotersRecord) -> Voters:
        """Return the voters that the message names."""
        return Voters(
            {
                each.voter_id: (
                    ReplicaKey(each.voter_id, each.voter_directory_id or UUID(int=0)),
                    tuple(Listener(at.name, at.host, at.port) for at in each.endpoints),
                )
                for each in message.voters
            }
        )


def version_message() -> version_record.KRaftVersionRecord:
    """Return the message that says which protocol the quorum speaks."""
    return version_record.KRaftVersionRecord(version=0, k_raft_version=KRAFT_VERSION)
