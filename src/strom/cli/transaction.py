"""`strom transaction`: list and describe transactions; find and abort those that hang.

A transaction hangs when a partition has it open and its coordinator knows nothing of it any more:
nothing will ever end it, and whoever reads only what is committed waits in front of it.
librdkafka has no calls for any of this; the brokers are asked over plain connections.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from strom.cli import client
from strom.cli.failure import USED_WRONGLY, Failure
from strom.cli.options import ReportOptions, examples, noun, taking
from strom.cli.output import print_json, print_table
from strom.cli.plain import ask
from strom.wire.errors import ErrorCode
from strom.wire.messages import Call, declared_message
from strom.wire.schema import message, of

if TYPE_CHECKING:
    from confluent_kafka.admin import BrokerMetadata, ClusterMetadata
    from kio.schema.describe_producers.v0.response import ProducerState

app = noun("List and describe transactions; find and abort those that hang.")

TRANSACTION = 1
#: As coordinators call them.
STATES = (
    *("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"),
    *("PrepareEpochFence", "Dead"),
)
#: Kafka's limit for `transaction.timeout.ms`, and what its own tool adds before it suspects.
TIMEOUT_MINUTES_MAX = 15
GRACE_MINUTES = 5
#: The longest time-out that a producer can ask for at all, whatever the limit.
MINUTES_MAX = (2**31 - 1) / 60_000
ABORT = False
#: What a request can hold; below 0 nobody is meant, or everybody.
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1

Address = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Listed:
    """A transactional id as its coordinator lists it."""

    transactional_id: str
    coordinator: int
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True)
class Described:
    """All that a coordinator knows of a transaction."""

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    started: str | None
    partitions: list[str]


@message()
class InTransaction:
    """Partitions of a topic that are in a transaction."""

    topic: str = of("string")
    partitions: tuple[int, ...] = of("int32")


@message()
class Known:
    """A transaction, as its coordinator describes it."""

    error_code: int = of("int16")
    transactional_id: str = of("string")
    state: str = of("string")
    timeout_ms: int = of("int32")
    #: Below 0 if there was none yet; a producer may say a time that no calendar has.
    started_ms: int = of("int64")
    producer_id: int = of("int64")
    producer_epoch: int = of("int16")
    topics: tuple[InTransaction, ...] = of("struct")


@message()
class KnownTransactions:
    """The response to DescribeTransactions."""

    throttle_time_ms: int = of("int32")
    transactions: tuple[Known, ...] = of("struct")


LIST_TRANSACTIONS = Call("list_transactions", 1)
DESCRIBE_TRANSACTIONS = Call("describe_transactions", 0, declared_message(KnownTransactions))
FIND_COORDINATOR = Call("find_coordinator", 4)
DESCRIBE_PRODUCERS = Call("describe_producers", 0)
WRITE_TXN_MARKERS = Call("write_txn_markers", 1)


@dataclass(frozen=True, slots=True)
class Hanging:
    """A transaction that a partition has open and that its coordinator does not know."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    start_offset: int
    last_written: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions(ReportOptions):
    """Which transactions to list."""

    state: Annotated[
        list[str],
        typer.Option("--state", metavar="STATE", help="Only in this state; repeatable."),
    ] = field(default_factory=list)
    producer_id: Annotated[
        list[int],
        typer.Option(
            "--producer-id",
            metavar="ID",
            min=LONG_MIN,
            max=LONG_MAX,
            help="Only of this producer; repeatable.",
        ),
    ] = field(default_factory=list)
    longer_than: Annotated[
        int,
        typer.Option(
            "--longer-than",
            metavar="MS",
            min=LONG_MIN,
            max=LONG_MAX,
            help="Only those that run for longer.",
        ),
    ] = -1


@app.command(
    "list",
    epilog=examples("strom transaction list", "strom transaction list --state Ongoing --json"),
)
@taking(ListOptions)
def list_transactions(options: ListOptions) -> None:
    """List the transactional ids that the coordinators know."""
    states = [state_named(each) for each in options.state]
    cluster = client.metadata(client.admin(options))
    found = sorted(
        listed(cluster, states, options.producer_id, options.longer_than),
        key=lambda each: each.transactional_id,
    )
    if options.json:
        print_json([asdict(each) for each in found])
        return
    rows = [(e.transactional_id, e.coordinator, e.producer_id, e.state) for e in found]
    print_table(("Transactional id", "Coordinator#", "Producer id#", "State"), rows)


def state_named(text: str) -> str:
    """Return the state that a user names, in any case."""
    by_word = {each.lower(): each for each in STATES}
    try:
        return by_word[text.replace("_", "").replace("-", "").lower()]
    except KeyError:
        there_are = ", ".join(sorted(by_word))
        raise Failure(
            f"{text!r} is no state of a transaction: there are {there_are}", USED_WRONGLY
        ) from None


def listed(
    cluster: "ClusterMetadata", states: list[str], producer_ids: list[int], longer_than_ms: int = -1
) -> Iterator[Listed]:
    """Ask every broker for the transactions that it coordinates."""
    asked = LIST_TRANSACTIONS.request.ListTransactionsRequest(
        state_filters=tuple(states),
        producer_id_filters=tuple(producer_ids),
        duration_filter=longer_than_ms,
    )
    for broker in cluster.brokers.values():
        answer = ask(where(broker), LIST_TRANSACTIONS, asked)
        require_success(answer.error_code, f"broker {broker.id}")
        if answer.unknown_state_filters:
            raise Failure(f"there is no state {answer.unknown_state_filters[0]!r}")
        for each in answer.transaction_states:
            yield Listed(each.transactional_id, broker.id, each.producer_id, each.transaction_state)


def where(broker: "BrokerMetadata") -> Address:
    """Return where a broker listens."""
    return str(broker.host), broker.port


def require_success(code: ErrorCode, what: str) -> None:
    """Fail if a broker refused."""
    if code != ErrorCode.NONE:
        raise Failure(f"{what}: {ErrorCode(code).name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeOptions(ReportOptions):
    """Which transaction to describe."""

    transactional_id: Annotated[str, typer.Argument(metavar="TRANSACTIONAL_ID")]


@app.command(epilog=examples("strom transaction describe shop-1"))
@taking(DescribeOptions)
def describe(options: DescribeOptions) -> None:
    """Show the state of a transactional id, and the partitions of its transaction."""
    found = described(client.address(options), options.transactional_id)
    if options.json:
        print_json(asdict(found))
        return
    rows = [
        ("transactional id", found.transactional_id),
        ("state", found.state),
        ("producer id", found.producer_id),
        ("producer epoch", found.producer_epoch),
        ("time-out", f"{found.timeout_ms} ms"),
        ("started", found.started or "-"),
        ("partitions", ", ".join(found.partitions) or "-"),
    ]
    print_table(("", ""), rows)


def described(address: Address, transactional_id: str) -> Described:
    """Ask the coordinator of a transactional id."""
    asked = DESCRIBE_TRANSACTIONS.request.DescribeTransactionsRequest(
        transactional_ids=(transactional_id,)
    )
    coordinator = coordinator_of(address, transactional_id)
    (found,) = ask(coordinator, DESCRIBE_TRANSACTIONS, asked).transactions
    require_success(ErrorCode(found.error_code), f"transactional id '{transactional_id}'")
    return Described(
        found.transactional_id,
        found.state,
        found.producer_id,
        found.producer_epoch,
        found.timeout_ms,
        at(found.started_ms) if found.started_ms > 0 else None,
        [f"{topic.topic}-{each}" for topic in found.topics for each in topic.partitions],
    )


def at(time_ms: int) -> str:
    """Return a time as text; one that no calendar has, which a producer may well say, as @MS."""
    try:
        return datetime.fromtimestamp(time_ms / 1000, tz=UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError):
        return f"@{time_ms}"


def coordinator_of(address: Address, transactional_id: str) -> Address:
    """Ask any broker who coordinates a transactional id."""
    asked = FIND_COORDINATOR.request.FindCoordinatorRequest(
        key_type=TRANSACTION, coordinator_keys=(transactional_id,)
    )
    (found,) = ask(address, FIND_COORDINATOR, asked).coordinators
    require_success(found.error_code, f"the coordinator of '{transactional_id}'")
    return found.host, found.port


@dataclass(frozen=True, slots=True, kw_only=True)
class FindOptions(ReportOptions):
    """Where to look for transactions that hang."""

    topics: Annotated[
        list[str] | None,
        typer.Argument(metavar="TOPIC", show_default=False, help="Default: all."),
    ] = None
    max_timeout: Annotated[
        float,
        typer.Option(
            "--max-transaction-timeout",
            min=0,
            max=MINUTES_MAX,
            metavar="MINUTES",
            help="The longest time-out of any producer; five minutes are added.",
        ),
    ] = TIMEOUT_MINUTES_MAX


@app.command(
    "find-hanging",
    epilog=examples("strom transaction find-hanging", "strom transaction find-hanging orders"),
)
@taking(FindOptions)
def find_hanging(options: FindOptions) -> None:
    """Find transactions that nothing will ever end."""
    cluster = client.metadata(client.admin(options))
    for name in options.topics or ():
        if name not in cluster.topics:
            raise client.unknown_topic(name, cluster.topics)
    age_ms = int((options.max_timeout + GRACE_MINUTES) * 60_000)
    found = list(hanging(cluster, options.topics or sorted(cluster.topics), age_ms))
    if options.json:
        print_json([asdict(each) for each in found])
        return
    if not found:
        print("No transaction hangs.")
        return
    columns = ("Topic", "Partition#", "Producer id#", "Epoch#", "Start offset#", "Last written")
    rows = [
        (e.topic, e.partition, e.producer_id, e.producer_epoch, e.start_offset, e.last_written)
        for e in found
    ]
    print_table(columns, rows)


def hanging(cluster: "ClusterMetadata", topics: list[str], age_ms: int) -> Iterator[Hanging]:
    """Yield the open transactions that are old and that no coordinator has."""
    now_ms = int(datetime.now(tz=UTC).timestamp() * 1000)
    for topic in topics:
        for partition in sorted(cluster.topics[topic].partitions):
            for each in producers(cluster, topic, partition):
                is_old = now_ms - each.last_timestamp > age_ms
                if each.current_txn_start_offset < 0 or not is_old:
                    continue
                if f"{topic}-{partition}" not in known_partitions(cluster, each.producer_id):
                    yield as_hanging(topic, partition, each)


def as_hanging(topic: str, partition: int, producer: "ProducerState") -> Hanging:
    """Return what is to be known of a producer's open transaction."""
    return Hanging(
        topic,
        partition,
        producer.producer_id,
        producer.producer_epoch,
        producer.coordinator_epoch,
        producer.current_txn_start_offset,
        at(producer.last_timestamp),
    )


def known_partitions(cluster: "ClusterMetadata", producer_id: int) -> set[str]:
    """Return the partitions that coordinators have in a transaction of the producer."""
    found: set[str] = set()
    for each in listed(cluster, [], [producer_id]):
        broker = cluster.brokers[each.coordinator]
        found.update(described(where(broker), each.transactional_id).partitions)
    return found


def producers(
    cluster: "ClusterMetadata", topic: str, partition: int
) -> "tuple[ProducerState, ...]":
    """Ask the leader of a partition who has written to it."""
    request = DESCRIBE_PRODUCERS.request
    named = request.TopicRequest(name=topic, partition_indexes=(partition,))
    asked = request.DescribeProducersRequest(topics=(named,))
    answer = ask(leader_of(cluster, topic, partition), DESCRIBE_PRODUCERS, asked)
    found = answer.topics[0].partitions[0]
    require_success(found.error_code, f"{topic}-{partition}")
    active: tuple[ProducerState, ...] = found.active_producers
    return active


def leader_of(cluster: "ClusterMetadata", topic: str, partition: int) -> Address:
    """Return where the leader of a partition is."""
    if topic not in cluster.topics:
        raise client.unknown_topic(topic, cluster.topics)
    found = cluster.topics[topic].partitions.get(partition)
    if found is None:
        raise Failure(f"topic '{topic}' has no partition {partition}")
    broker = cluster.brokers.get(found.leader)
    if broker is None:
        raise Failure(f"{topic}-{partition} has no leader now")
    return where(broker)


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortOptions(ReportOptions):
    """Which transaction to abort."""

    topic: Annotated[str, typer.Argument(metavar="TOPIC", show_default=False)]
    partition: Annotated[int, typer.Argument(metavar="PARTITION", min=0, show_default=False)]
    start_offset: Annotated[
        int,
        typer.Option("--start-offset", metavar="OFFSET", min=0, help="As `find-hanging` shows it."),
    ]


@app.command(epilog=examples("strom transaction abort orders 0 --start-offset 4711"))
@taking(AbortOptions)
def abort(options: AbortOptions) -> None:
    """End a hanging transaction in one partition; what it wrote there is never seen."""
    cluster = client.metadata(client.admin(options))
    topic, partition = options.topic, options.partition
    for each in producers(cluster, topic, partition):
        if each.current_txn_start_offset == options.start_offset:
            write_marker(leader_of(cluster, topic, partition), topic, partition, each)
            break
    else:
        raise Failure(
            f"{topic}-{partition} has no open transaction that begins at {options.start_offset}"
        )
    if options.json:
        print_json({"aborted": asdict(as_hanging(topic, partition, each))})
    else:
        print(f"Aborted the transaction of producer {each.producer_id} in {topic}-{partition}.")


def write_marker(address: Address, topic: str, partition: int, producer: "ProducerState") -> None:
    """Have the leader write the marker that ends the transaction."""
    request = WRITE_TXN_MARKERS.request
    marker = request.WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        transaction_result=ABORT,
        topics=(request.WritableTxnMarkerTopic(name=topic, partition_indexes=(partition,)),),
        # A transaction that is the first of its producer here has no coordinator's epoch yet.
        coordinator_epoch=max(producer.coordinator_epoch, 0),
    )
    asked = request.WriteTxnMarkersRequest(markers=(marker,))
    answer = ask(address, WRITE_TXN_MARKERS, asked)
    (written,) = answer.markers[0].topics[0].partitions
    require_success(written.error_code, f"{topic}-{partition}")
