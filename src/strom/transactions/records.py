"""The records of `__transaction_state`, as Kafka has them: one per transactional id.

    key   = type int16 (0) | transactional id
    value = version int16 | the producer, its newest transaction and that one's partitions

Version 1 has tagged fields, and is written from `transaction.version` 1 on; before that, version 0,
so that an older Kafka reads it. `form` reads and writes them.
"""

from strom.wire.versioned import message, of

TRANSACTION_TYPE = 0
NO_PRODUCER_ID = -1
NO_EPOCH = -1
NO_TIME = -1
#: The first `transaction.version` at which values have tagged fields.
TAGGED_FROM = 1


@message(api_key=TRANSACTION_TYPE, written=0, flexible_since=1)
class TransactionLogKey:
    """Whose transaction it is."""

    transactional_id: str = of("string")


@message()
class PartitionsSchema:
    """The partitions of one topic that are in a transaction."""

    topic: str = of("string")
    partition_ids: tuple[int, ...] = of("int32")


@message(api_key=TRANSACTION_TYPE, written=1, flexible_since=1)
class TransactionLogValue:
    """All that is known of a transactional id."""

    producer_id: int = of("int64")
    previous_producer_id: int = of("int64", since=1, tag=0, default=NO_PRODUCER_ID)
    next_producer_id: int = of("int64", since=1, tag=1, default=NO_PRODUCER_ID)
    producer_epoch: int = of("int16")
    next_producer_epoch: int = of("int16", since=1, tag=3, default=NO_EPOCH)
    transaction_timeout_ms: int = of("int32")
    transaction_status: int = of("int8")
    transaction_partitions: tuple[PartitionsSchema, ...] | None = of("struct")
    transaction_last_update_timestamp_ms: int = of("int64")
    transaction_start_timestamp_ms: int = of("int64")
    client_transaction_version: int = of("int16", since=1, tag=2, default=0)


@message(api_key=TRANSACTION_TYPE, written=0, flexible_since=1)
class PlainTransactionLogValue(TransactionLogValue):
    """The same, written as it was before there were tagged fields: without them."""
