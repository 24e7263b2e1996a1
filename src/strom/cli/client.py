"""Clients of any Kafka cluster, made from a command's options; refusals become one line.

librdkafka tries for a long time to reach a broker that is not there. A person at a prompt wants
to know at once, so the address is tried with a plain connection first.
"""

import difflib
import logging
import re
import socket
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from strom.cli.failure import USED_WRONGLY, Failure
from strom.cli.lean import PORT_MAX
from strom.cli.options import ClientOptions, key_values
from strom.cli.properties_file import read_properties_file

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
    from confluent_kafka.admin import AdminClient, ClusterMetadata, TopicMetadata

ANSWER_SECONDS_MAX = 10.0
CONNECT_SECONDS_MAX = 3.0
DEFAULT_PORT = 9092
#: How long the client library's log does not say the same again.
REPEAT_SECONDS = 30.0

#: Names of the Java client that librdkafka does not know under the same name.
JAVA_NAMES = {"fetch.max.wait.ms": "fetch.wait.max.ms", "max.request.size": "message.max.bytes"}

_TOOK = re.compile(r"after \d+ms")

Properties = dict[str, Any]
Client: TypeAlias = "AdminClient | Producer | Consumer"


def properties(options: ClientOptions) -> Properties:
    """Return the client's properties: the file's, then those of the command line."""
    read: Properties = {"bootstrap.servers": options.bootstrap_server}
    if options.client_config_file is not None:
        # Colon and equals sign both separate (CON-15).
        read |= read_properties_file(options.client_config_file)
    read |= key_values(options.client_config)
    return {JAVA_NAMES.get(key, key): value for key, value in read.items()}


def address(options: ClientOptions) -> tuple[str, int]:
    """Return host and port of the first broker named that takes connections."""
    return require_reachable(properties(options))


def admin(options: ClientOptions) -> "AdminClient":
    """Return an admin client of a cluster that can be reached."""
    from confluent_kafka.admin import AdminClient

    settings = properties(options)
    require_reachable(settings)
    with bad_properties():
        return AdminClient(settings | {"logger": logger()})


def producer(options: ClientOptions, defaults: Properties) -> "Producer":
    """Return a producer; what the user says goes before the defaults."""
    from confluent_kafka import Producer

    settings = defaults | properties(options)
    require_reachable(settings)
    with bad_properties():
        return Producer(settings | {"logger": logger()})


def consumer(options: ClientOptions, defaults: Properties) -> "Consumer":
    """Return a consumer that belongs to no group: it is told what to read, and commits nothing."""
    from confluent_kafka import Consumer

    alone = {
        # librdkafka wants a name although no group is ever joined.
        "group.id": "strom-cli",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        # Missing data is an error to show, not a reason to start elsewhere.
        "auto.offset.reset": "error",
    }
    settings = alone | defaults | properties(options)
    require_reachable(settings)
    with bad_properties():
        return Consumer(settings | {"logger": logger()})


@contextmanager
def bad_properties() -> Iterator[None]:
    """Say that a property is wrong, if making a client fails."""
    from confluent_kafka import KafkaException

    try:
        yield
    except (KafkaException, TypeError, AttributeError) as error:
        # The two of Python: a property that stands for a function (`error_cb`) or an object.
        raise Failure(f"client property: {text_of(error)}", USED_WRONGLY) from None


def require_reachable(settings: Properties) -> tuple[str, int]:
    """Return the first of the addresses that takes a connection; fail if none does."""
    addresses = str(settings["bootstrap.servers"])
    reasons = []
    for address in addresses.split(","):
        host, port = split_address(address.strip())
        try:
            socket.create_connection((host, port), timeout=CONNECT_SECONDS_MAX).close()
        except OSError as error:
            reasons.append(f"{address.strip()}: {error.strerror or 'no answer'}")
        except UnicodeError:
            # Of what it cannot look up, Python says so in another way than the system.
            reasons.append(f"{address.strip()}: no host can have that name")
        else:
            return host, port
    raise Failure(
        f"no broker at {'; '.join(reasons)}. "
        "Start one with `strom up`, or name another with -b or STROM_BOOTSTRAP."
    )


def split_address(address: str) -> tuple[str, int]:
    """Return host and port."""
    bare = address.rpartition("://")[2]
    host, separator, port = bare.rpartition(":")
    if not separator or bare.endswith("]"):
        return bare.strip("[]"), DEFAULT_PORT
    if not port.isdecimal() or int(port) > PORT_MAX:
        raise Failure(
            f"{address!r} is no address: it should look like 127.0.0.1:9092", USED_WRONGLY
        )
    return host.strip("[]"), int(port)


def logger() -> logging.Logger:
    """Return the log of the client library: warnings and errors, as Kafka's own tools show them."""
    log = logging.getLogger("strom.client")
    if not log.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("[%(asctime)s] %(levelname)s %(message)s"))
        logging.addLevelName(logging.WARNING, "WARN")
        log.addHandler(handler)
        log.setLevel(logging.WARNING)
        log.addFilter(Repeats())
        log.propagate = False
    return log


class Repeats(logging.Filter):
    """Lets a line through once in a while: librdkafka tells of each attempt to reach a broker."""

    def __init__(self) -> None:
        super().__init__()
        #: When each line was last shown; lines differ by what happened, not by how long it took.
        self._shown_at: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is new, or was last shown long ago."""
        line = _TOOK.sub("", record.getMessage())
        before = self._shown_at.get(line)
        if before is not None and 0 <= record.created - before < REPEAT_SECONDS:
            return False
        self._shown_at = {line: record.created} | {
            each: at
            for each, at in self._shown_at.items()
            if record.created - at < REPEAT_SECONDS and each != line
        }
        return True


@contextmanager
def refusals() -> Iterator[None]:
    """Turn what a cluster refuses into a Failure with the cluster's own words."""
    from confluent_kafka import KafkaException

    try:
        yield
    except KafkaException as error:
        raise Failure(text_of(error)) from None


def text_of(error: "Exception | KafkaError") -> str:
    """Return the words of a KafkaException or KafkaError."""
    cause = next(iter(getattr(error, "args", ())), error)
    text: str = cause.str() if hasattr(cause, "str") else str(cause)
    return text


def metadata(client: "Client", topic: str | None = None) -> "ClusterMetadata":
    """Ask a client of any kind for the cluster's metadata."""
    from confluent_kafka import KafkaException

    try:
        if topic is None:
            return client.list_topics(timeout=ANSWER_SECONDS_MAX)
        return client.list_topics(topic, timeout=ANSWER_SECONDS_MAX)
    except KafkaException as error:
        if error.args[0].name() in {"_TRANSPORT", "_TIMED_OUT"}:
            raise Failure(
                f"the broker did not answer within {ANSWER_SECONDS_MAX:.0f} s: "
                "is that a Kafka port, and does it want TLS or SASL (-X security.protocol=…)?"
            ) from None
        raise Failure(text_of(error)) from None


def partitions_of(client: "Client", topic: str) -> list[int]:
    """Return the partitions of a topic that must exist."""
    topics = metadata(client).topics
    if topic not in topics:
        raise unknown_topic(topic, topics)
    return sorted(topics[topic].partitions)


def topic_to_write(client: "Client", topic: str) -> "TopicMetadata":
    """Return a topic's metadata; one that is not there yet may come with the first record."""
    found = metadata(client, topic).topics[topic]
    if found.error is not None and found.error.name() == "TOPIC_EXCEPTION":
        raise Failure(f"Topic name '{topic}' is not valid")
    return found


def require_broker(client: "Client", name: str) -> None:
    """Fail unless there is a broker of that id: librdkafka would look for it for a minute."""
    brokers = sorted(metadata(client).brokers)
    if name not in map(str, brokers):
        there = ", ".join(map(str, brokers))
        raise Failure(f"there is no broker {name}: those that run are {there}")


def unknown_topic(topic: str, known: Iterable[str]) -> Failure:
    """Say that a topic is missing, in Kafka's words (TOP-05), with the nearest name there is."""
    near = difflib.get_close_matches(topic, list(known), n=1)
    hint = f" (did you mean '{near[0]}'?)" if near else ""
    return Failure(f"Topic '{topic}' does not exist as expected{hint}")


def is_unknown_topic(error: "KafkaError") -> bool:
    """Whether the cluster says that it has no such topic."""
    return error.name() in {"UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC"}


def watermarks(reader: "Consumer", partition: "TopicPartition") -> tuple[int, int]:
    """Return the start and end offset of a partition."""
    with refusals():
        low, high = reader.get_watermark_offsets(partition, timeout=ANSWER_SECONDS_MAX)
    return low, high


def offset_of_time(reader: "Consumer", place: tuple[str, int], time_ms: int) -> int | None:
    """Return the first offset of a partition at or after a time; None if there is none."""
    from confluent_kafka import TopicPartition

    with refusals():
        (found,) = reader.offsets_for_times(
            [TopicPartition(*place, time_ms)], timeout=ANSWER_SECONDS_MAX
        )
    # Of a partition that could not be asked there is no offset either.
    if found.error is not None:
        raise Failure(f"{place[0]}-{place[1]}: {text_of(found.error)}")
    return found.offset if found.offset >= 0 else None
