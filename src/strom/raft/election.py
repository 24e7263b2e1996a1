"""What a voter must not forget: the epoch, who leads in it, whom it has voted for.

This is the file `quorum-state`, in Kafka's form. It is written before anybody is told of it: a
voter that forgot its vote could give a second one in the same epoch, and two would lead.
"""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from uuid import UUID

from strom.raft.voters import ReplicaKey

DATA_VERSION = 1
NOBODY = -1
_NO_DIRECTORY = UUID(int=0)


@dataclass(frozen=True, slots=True)
class ElectionState:
    """An epoch, and what this voter knows of its election."""

    epoch: int = 0
    leader_id: int = NOBODY
    voted: ReplicaKey | None = None


def write_election(state: ElectionState) -> bytes:
    """Return the content of quorum-state."""
    voted = state.voted or ReplicaKey(NOBODY, _NO_DIRECTORY)
    content = {
        "leaderId": state.leader_id,
        "leaderEpoch": state.epoch,
        "votedId": voted.id,
        "votedDirectoryId": urlsafe_b64encode(voted.directory_id.bytes).decode().rstrip("="),
        "data_version": DATA_VERSION,
    }
    return json.dumps(content, separators=(",", ":")).encode()


def read_election(data: bytes) -> ElectionState:
    """Return the state that quorum-state holds; ValueError if that is damaged."""
    try:
        content = json.loads(data)
        voted_id = int(content["votedId"])
        # Version 0, of the quorum with a fixed list, has no directory.
        directory = urlsafe_b64decode(content.get("votedDirectoryId", "A" * 22) + "==")
        voted = None if voted_id == NOBODY else ReplicaKey(voted_id, UUID(bytes=directory))
        return ElectionState(int(content["leaderEpoch"]), int(content["leaderId"]), voted)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"quorum-state cannot be read: {error!r}") from None
