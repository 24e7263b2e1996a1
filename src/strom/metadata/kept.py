"""Records that the image keeps for others: quotas, credentials, tokens, access control.

Strom does not act on these yet. Each says by `identity` what it is about, so that a later record
about the same replaces it, and by `REMOVERS` what takes it away.
"""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from strom.wire.schema import message, of


@message(api_key=11)
class UserScramCredential:
    """A user's SCRAM secret for one mechanism."""

    name: str = of("string")
    mechanism: int = of("int8")
    salt: bytes = of("bytes")
    stored_key: bytes = of("bytes")
    server_key: bytes = of("bytes")
    iterations: int = of("int32")


@message(api_key=22)
class RemoveUserScramCredential:
    """The user's secret for the mechanism is gone."""

    name: str = of("string")
    mechanism: int = of("int8")


@message(api_key=10)
class DelegationToken:
    """A token that stands for its owner."""

    owner: str = of("string")
    requester: str = of("string")
    renewers: tuple[str, ...] = of("string")
    issue_timestamp: int = of("int64")
    max_timestamp: int = of("int64")
    expiration_timestamp: int = of("int64")
    token_id: str = of("string")


@message(api_key=26)
class RemoveDelegationToken:
    """The token is no longer valid."""

    token_id: str = of("string")


@message()
class QuotaEntity:
    """Whom a quota is for: a kind, and a name or None for its default."""

    entity_type: str = of("string")
    entity_name: str | None = of("string")


@message(api_key=14)
class ClientQuota:
    """A limit for some clients, or that there is none any more."""

    entity: tuple[QuotaEntity, ...] = of("struct")
    key: str = of("string")
    value: float = of("float64")
    remove: bool = of("bool")


@message(api_key=18)
class AccessControlEntry:
    """Who may, or may not, do what with which resource."""

    id: UUID = of("uuid")
    resource_type: int = of("int8")
    resource_name: str = of("string")
    pattern_type: int = of("int8")
    principal: str = of("string")
    host: str = of("string")
    operation: int = of("int8")
    permission_type: int = of("int8")


@message(api_key=19)
class RemoveAccessControlEntry:
    """The entry no longer counts."""

    id: UUID = of("uuid")


@message(api_key=21)
class ZkMigrationState:
    """How far a cluster that once had ZooKeeper came on its way here."""

    zk_migration_state: int = of("int8")


KEPT: tuple[type[Any], ...] = (
    UserScramCredential,
    RemoveUserScramCredential,
    DelegationToken,
    RemoveDelegationToken,
    ClientQuota,
    AccessControlEntry,
    RemoveAccessControlEntry,
    ZkMigrationState,
)

#: What a kept record is about; first the api key of the record that says so.
Identity = tuple[object, ...]

REMOVERS = (RemoveUserScramCredential, RemoveDelegationToken, RemoveAccessControlEntry)


def _quota_identity(record: ClientQuota) -> Identity:
    whom = sorted((each.entity_type, each.entity_name or "") for each in record.entity)
    return (14, tuple(whom), record.key)


_IDENTITIES: dict[type, Callable[[Any], Identity]] = {
    UserScramCredential: lambda record: (11, record.name, record.mechanism),
    RemoveUserScramCredential: lambda record: (11, record.name, record.mechanism),
    DelegationToken: lambda record: (10, record.token_id),
    RemoveDelegationToken: lambda record: (10, record.token_id),
    ClientQuota: _quota_identity,
    AccessControlEntry: lambda record: (18, record.id),
    RemoveAccessControlEntry: lambda record: (18, record.id),
    ZkMigrationState: lambda record: (21,),
}


def identity(record: object) -> Identity:
    """Return what the record is about; equal for all records about the same."""
    return _IDENTITIES[type(record)](record)


def is_removal(record: object) -> bool:
    """Whether the record takes away what it is about."""
    return isinstance(record, REMOVERS) or (isinstance(record, ClientQuota) and record.remove)
