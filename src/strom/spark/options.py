"""The options of a read, as values: what to read, from where to where, and how.

`ReadOptions.parse` takes the options as Spark hands them over and refuses what cannot be
honoured, by name, before anything is asked of a broker. Where a value is wrong in Spark's own
connector it is wrong here, for the same reason.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from strom.spark.failure import OptionError
from strom.spark.given import LONG_MAX, SUBSCRIPTIONS, Given, tell_foreign
from strom.spark.limits import BATCH_ENDS, BATCH_STARTS, STREAM_STARTS, Limit, parse_limit
from strom.spark.option_names import check_option
from strom.spark.places import Assigned, parse_partitions

MINUTE_MS = 60 * 1000
_UNITS_MS = {
    "us": 0.001,
    "ms": 1.0,
    "s": 1000.0,
    "m": float(MINUTE_MS),
    "min": float(MINUTE_MS),
    "h": 60.0 * MINUTE_MS,
    "d": 24 * 60.0 * MINUTE_MS,
}
#: Python would take it for something else; in names of topics there are no brackets.
_SET_IN_SET = re.compile(r"&&|\[[^\]]*\[")
_DURATION = re.compile(r"(?P<number>-?\d+)\s*(?P<unit>[a-z]*)")

_NO_TRIGGERS = "a batch read has no triggers"
_NO_GROUP = "a batch read commits nothing to a group"
_NO_KNOWN_END = "a batch read knows no earlier end of a partition, so it looks once"
#: What a batch read takes and does not need.
_FOR_STREAMS = {
    "maxOffsetsPerTrigger": _NO_TRIGGERS,
    "minOffsetsPerTrigger": _NO_TRIGGERS,
    "maxTriggerDelay": _NO_TRIGGERS,
    "kafka.group.id": _NO_GROUP,
    "groupIdPrefix": _NO_GROUP,
    "fetchOffset.numRetries": _NO_KNOWN_END,
    "fetchOffset.retryIntervalMs": _NO_KNOWN_END,
}

#: A fetch brings at most so much of one partition, and with it an Arrow batch its size.
FETCH_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Subscription:
    """Which partitions are read: those of some topics, of a pattern of names, or just these."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    assigned: Assigned = frozenset()

    def reads(self, topic: str) -> bool:
        """Whether a topic of this name is read."""
        if self.pattern is not None:
            return re.fullmatch(self.pattern, topic) is not None
        return topic in self.topics or any(topic == name for name, _ in self.assigned)

    def __str__(self) -> str:
        if self.pattern is not None:
            return f"subscribePattern {self.pattern}"
        if self.assigned:
            return "assign " + ", ".join(sorted(f"{t}-{n}" for t, n in self.assigned))
        return "subscribe " + ", ".join(self.topics)


@dataclass(frozen=True, slots=True)
class Connection:
    """How the brokers are reached and asked."""

    bootstrap: tuple[tuple[str, int], ...]
    client_id: str = "strom-spark"
    read_committed: bool = False
    checks_crcs: bool = True
    fetch_bytes_max: int = 50 * 1024 * 1024
    fetch_bytes_min: int = 1
    fetch_wait_max_ms: int = 500
    partition_bytes_max: int = FETCH_BYTES
    receive_buffer_bytes: int = 1024 * 1024
    send_buffer_bytes: int = -1
    request_timeout_ms: int = 30_000
    #: How long one answer may take in all, new leaders and connections included.
    patience_ms: int = 60_000
    retry_backoff_ms: int = 100

    @property
    def servers(self) -> str:
        """The addresses as a client library takes them."""
        return ",".join(f"{_bracketed(host)}:{port}" for host, port in self.bootstrap)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """All that a read is told."""

    subscription: Subscription
    connection: Connection
    starting: Limit
    ending: Limit
    fails_on_data_loss: bool = True
    includes_headers: bool = False
    #: Whether a batch is planned anew each time that its frame is used.
    reads_anew: bool = False
    max_offsets: int | None = None
    min_offsets: int | None = None
    max_trigger_delay_ms: int = 15 * MINUTE_MS
    min_partitions: int | None = None
    max_records: int | None = None
    offset_attempts: int = 3
    offset_interval_ms: int = 1000
    group_id: str | None = None
    group_prefix: str | None = None
    #: What was set and has no effect, with the reason, to be told once.
    warnings: tuple[str, ...] = field(default=())

    @classmethod
    def parse(
        cls,
        options: Mapping[str, str],
        *,
        streaming: bool,
        others: frozenset[str] = frozenset(),
    ) -> "ReadOptions":
        """Read the options; what cannot be honoured is refused by its name."""
        given = {name.lower(): value for name, value in options.items()}
        warnings = [
            f"Option '{name}' has no effect: {why}."
            for name in given
            if (why := check_option(name, others=others)) is not None
        ]
        warnings += tell_foreign(given, others, "writes")
        return _GivenToRead(given).read_options(streaming, warnings)


class _GivenToRead(Given):
    """The options of a read."""

    def read_options(self, streaming: bool, warnings: list[str]) -> ReadOptions:
        if streaming:
            self._refuse_endings()
        else:
            warnings += self._ignored_in_a_batch()
        starts = STREAM_STARTS if streaming else BATCH_STARTS
        minimum, maximum = self._count("minOffsetsPerTrigger"), self._count("maxOffsetsPerTrigger")
        if minimum is not None and maximum is not None and minimum > maximum:
            raise OptionError(
                f"minOffsetsPerTrigger ({minimum}) is more than maxOffsetsPerTrigger ({maximum})."
            )
        if self.text("kafka.group.id") and self.text("groupIdPrefix"):
            warnings.append("Option 'groupIdPrefix' has no effect beside 'kafka.group.id'.")
        return ReadOptions(
            subscription=self._subscription(),
            connection=self._connection(),
            starting=parse_limit(self._options, starts),
            ending=parse_limit(self._options, BATCH_ENDS),
            fails_on_data_loss=self.truth("failOnDataLoss", True),
            includes_headers=self.truth("includeHeaders", False),
            reads_anew=self.truth("readAnew", False),
            max_offsets=maximum,
            min_offsets=minimum,
            max_trigger_delay_ms=self._duration("maxTriggerDelay", 15 * MINUTE_MS),
            min_partitions=self._count("minPartitions"),
            max_records=self._count("maxRecordsPerPartition"),
            offset_attempts=self.number("fetchOffset.numRetries", 3, least=1),
            offset_interval_ms=self.number("fetchOffset.retryIntervalMs", 1000, most=LONG_MAX),
            group_id=self.text("kafka.group.id"),
            group_prefix=self.text("groupIdPrefix"),
            warnings=tuple(warnings),
        )

    def _subscription(self) -> Subscription:
        given = [name for name in SUBSCRIPTIONS if name.lower() in self._options]
        if len(given) != 1:
            raise OptionError(
                f"Give one of the options {', '.join(SUBSCRIPTIONS)}"
                + (f", not {' and '.join(given)}." if given else ": what is to be read?")
            )
        value = self.text(given[0]) or ""
        if not value:
            raise OptionError(f"Option '{given[0]}' is empty: what is to be read?")
        match given[0]:
            case "assign":
                return Subscription(assigned=parse_partitions("assign", value))
            case "subscribe":
                topics = tuple(part.strip() for part in value.split(",") if part.strip())
                if not topics:
                    raise OptionError(f"Option 'subscribe' names no topic: '{value}'.")
                return Subscription(topics=topics)
            case _:
                return Subscription(pattern=_checked_pattern(value))

    def _connection(self) -> Connection:
        servers = self.servers()
        protocol = (self.text("kafka.security.protocol") or "PLAINTEXT").upper()
        if protocol != "PLAINTEXT":
            raise OptionError(
                f"Option 'kafka.security.protocol' = '{protocol}' is not supported: connections "
                "here are plain; name a PLAINTEXT listener of the cluster."
            )
        timeout = self.number("kafka.request.timeout.ms", 30_000, least=1)
        patience = self.number("kafka.default.api.timeout.ms", max(60_000, timeout), least=1)
        return Connection(
            bootstrap=servers,
            client_id=self.client_id(),
            read_committed=self._isolation(),
            checks_crcs=self.truth("kafka.check.crcs", True),
            fetch_bytes_max=self.number("kafka.fetch.max.bytes", 50 * 1024 * 1024),
            fetch_bytes_min=self.number("kafka.fetch.min.bytes", 1),
            fetch_wait_max_ms=self.number("kafka.fetch.max.wait.ms", 500),
            partition_bytes_max=self.number("kafka.max.partition.fetch.bytes", FETCH_BYTES),
            receive_buffer_bytes=self.number("kafka.receive.buffer.bytes", 1 << 20, least=-1),
            send_buffer_bytes=self.number("kafka.send.buffer.bytes", -1, least=-1),
            request_timeout_ms=timeout,
            # "kafkaConsumer.pollTimeoutMs" is how long a task waits for records.
            patience_ms=self.number(
                "kafkaConsumer.pollTimeoutMs", patience, least=1, most=LONG_MAX
            ),
            retry_backoff_ms=self.number("kafka.retry.backoff.ms", 100, most=LONG_MAX),
        )

    def _isolation(self) -> bool:
        level = (self.text("kafka.isolation.level") or "read_uncommitted").lower()
        if level not in ("read_committed", "read_uncommitted"):
            raise OptionError(
                f"Option 'kafka.isolation.level' is read_committed or read_uncommitted, "
                f"not '{level}'."
            )
        return level == "read_committed"

    def _refuse_endings(self) -> None:
        for name in ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"):
            if name.lower() in self._options:
                raise OptionError(f"Option '{name}' is for batch reads: a stream has no end.")
        if self.truth("readAnew", False):
            raise OptionError("Option 'readAnew' is for batch reads: a stream goes on by itself.")

    def _ignored_in_a_batch(self) -> list[str]:
        return [
            f"Option '{name}' has no effect: {why}."
            for name, why in _FOR_STREAMS.items()
            if name.lower() in self._options
        ]

    def _count(self, name: str) -> int | None:
        found = self.integer(name)
        if found is not None and found <= 0:
            raise OptionError(f"Option '{name}' must be positive, not {found}.")
        return found

    def _duration(self, name: str, default_ms: int) -> int:
        value = self.text(name)
        if value is None:
            return default_ms
        found = _DURATION.fullmatch(value.lower())
        unit = found["unit"] or "ms" if found else None
        if found is None or unit not in _UNITS_MS:
            raise OptionError(f"Option '{name}' is a time such as 30s, 15m or 1h, not '{value}'.")
        return int(int(found["number"]) * _UNITS_MS[unit])


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _checked_pattern(pattern: str) -> str:
    if _SET_IN_SET.search(pattern):
        raise OptionError(
            f"Option 'subscribePattern': '{pattern}' has sets inside sets, which only Java knows; "
            "write them out."
        )
    try:
        re.compile(pattern)
    except re.error as error:
        raise OptionError(
            f"Option 'subscribePattern': '{pattern}' is no pattern: {error}."
        ) from None
    return pattern
