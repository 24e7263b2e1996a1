"""The topics that coordinators keep their state in: how each is made, and who is loaded from it.

Both are made when a client first asks for a coordinator, or takes offsets into a transaction, with
the settings of that moment; they are ordinary topics from then on, but for their names.
"""

from strom.broker.context import Context
from strom.broker.coordination import Coordinators, Kind, Surroundings
from strom.broker.deciding import TIMEOUT_DEFAULT, decide
from strom.groups import records as group_records
from strom.groups.machine import GroupMachine
from strom.metadata.feature_decisions import TRANSACTION_VERSION
from strom.metadata.image import Image
from strom.metadata.outcome import Refusal
from strom.metadata.settings.values import BrokerSettings
from strom.metadata.topic_decisions import CreatedTopic, NewTopic
from strom.records.compression import Codec
from strom.transactions import records as transaction_records
from strom.transactions.machine import Rules, TransactionMachine
from strom.wire.errors import ErrorCode, KafkaError

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"


def coordinators(
    around: Surroundings, settings: BrokerSettings
) -> tuple[Coordinators[GroupMachine], Coordinators[TransactionMachine]]:
    """Return the coordinators of groups and of transactions."""
    return group_coordinators(around, settings), transaction_coordinators(around, settings)


def group_coordinators(
    around: Surroundings, settings: BrokerSettings
) -> Coordinators[GroupMachine]:
    """Return the coordinators of groups."""
    kind = Kind(
        topic=OFFSETS_TOPIC,
        new_machine=GroupMachine,
        see=GroupMachine.see,
        on_metadata=GroupMachine.on_metadata,
        form=group_records,
        codec=lambda settings: settings.number("offsets.topic.compression.codec"),
        timeout="offsets.commit.timeout.ms",
        load_buffer="offsets.load.buffer.size",
    )
    return Coordinators(kind, around, settings)


def transaction_coordinators(
    around: Surroundings, settings: BrokerSettings
) -> Coordinators[TransactionMachine]:
    """Return the coordinators of transactions."""
    kind = Kind(
        topic=TRANSACTIONS_TOPIC,
        new_machine=lambda image, settings: TransactionMachine(transaction_rules(image, settings)),
        see=see_transactions,
        on_metadata=None,
        form=transaction_records,
        codec=lambda _: Codec.NONE,
        # Kafka gives a write of a transaction's state the time that offsets have.
        timeout="offsets.commit.timeout.ms",
        load_buffer="transaction.state.log.load.buffer.size",
    )
    return Coordinators(kind, around, settings)


def transaction_rules(image: Image, settings: BrokerSettings) -> Rules:
    """Return what settings and features say about transactions."""
    return Rules(
        version=image.features.get(TRANSACTION_VERSION, 0),
        expiration_ms=settings.number("transactional.id.expiration.ms"),
        time_out_interval_ms=settings.number(
            "transaction.abort.timed.out.transaction.cleanup.interval.ms"
        ),
        expire_interval_ms=settings.number(
            "transaction.remove.expired.transaction.cleanup.interval.ms"
        ),
    )


def see_transactions(machine: TransactionMachine, image: Image, settings: BrokerSettings) -> None:
    """Have the machine decide by this image and these settings from now on."""
    machine.rules = transaction_rules(image, settings)


async def make_topic(name: str, context: Context) -> None:
    """Make one of them, unless it cannot be made; whoever asks meanwhile waits for the same one."""
    parts = context.parts
    asked = [new_topic(name, parts.settings)]
    # If not, it is not there, which is what an answer has to say; why, is for who runs the broker.
    try:
        made = await decide(
            parts,
            TIMEOUT_DEFAULT,
            parts.controller.create_topics,
            asked,
            defaults=context.topic_defaults,
            rng=parts.host.rng,
            validate_only=False,
        )
    except KafkaError as error:
        outcome: CreatedTopic | Refusal = Refusal.of(error)
    else:
        outcome = made[name]
    if isinstance(outcome, Refusal) and outcome.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
        coordinators = parts.groups if name == OFFSETS_TOPIC else parts.transactions
        coordinators.note_missing(f"{outcome.code.name}: {outcome.message or ''}")


def new_topic(name: str, settings: BrokerSettings) -> NewTopic:
    """Return how a topic is made of which no more is known than its name."""
    if name == OFFSETS_TOPIC:
        return offsets_topic(settings)
    return transactions_topic(settings) if name == TRANSACTIONS_TOPIC else NewTopic(name)


def offsets_topic(settings: BrokerSettings) -> NewTopic:
    """Return how the topic of offsets is made."""
    return NewTopic(
        OFFSETS_TOPIC,
        settings.number("offsets.topic.num.partitions"),
        settings.number("offsets.topic.replication.factor"),
        (),
        (
            ("cleanup.policy", "compact"),
            ("compression.type", "producer"),
            ("segment.bytes", str(settings.number("offsets.topic.segment.bytes"))),
        ),
    )


def transactions_topic(settings: BrokerSettings) -> NewTopic:
    """Return how the topic of transactions is made."""
    return NewTopic(
        TRANSACTIONS_TOPIC,
        settings.number("transaction.state.log.num.partitions"),
        settings.number("transaction.state.log.replication.factor"),
        (),
        (
            ("unclean.leader.election.enable", "false"),
            ("compression.type", "uncompressed"),
            ("cleanup.policy", "compact"),
            ("min.insync.replicas", str(settings.number("transaction.state.log.min.isr"))),
            ("segment.bytes", str(settings.number("transaction.state.log.segment.bytes"))),
        ),
    )
