"""The options of a write, as values, and every setting of a Kafka producer with what becomes of it.

`WriteOptions.parse` takes the options as Spark hands them over and refuses what cannot be
honoured, by name, before anything is asked of a broker. A setting is honoured, or has no meaning
here and is told to have none, or is refused with the reason; a name that is in no table is refused
with the nearest one that is.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from strom.records.compression import CODEC_NAMES, Codec
from strom.spark.failure import OptionError
from strom.spark.given import LONG_MAX, Given, tell_foreign
from strom.spark.option_names import KAFKA, PLAIN_ONLY, Settings, nearest
from strom.spark.options import Connection

#: Options of the sink itself; the last two are Strom's own.
SINK_OPTIONS = ("topic", "exactlyOnce", "transactionalIdPrefix")

#: What Spark itself is told about a write, and hands on.
SPARK_OPTIONS = ("checkpointlocation", "queryname")

#: Settings of a Kafka producer that mean the same here.
PRODUCER_SETTINGS = (
    "bootstrap.servers",
    "batch.size",
    "buffer.memory",
    "client.id",
    "compression.type",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.zstd.level",
    "delivery.timeout.ms",
    "max.block.ms",
    "max.in.flight.requests.per.connection",
    "metadata.max.age.ms",
    "partitioner.ignore.keys",
    "receive.buffer.bytes",
    "request.timeout.ms",
    "retry.backoff.ms",
    "security.protocol",
    "send.buffer.bytes",
    "transaction.timeout.ms",
)

_ALWAYS_SAFE = "rows are always written idempotently, and acknowledged by all in-sync replicas"
_NO_LINGER = "a batch leaves when it is full, or when the task has no more rows"
_NO_METRICS = "there is no Java client whose metrics could be reported"
_ONE_BACKOFF = "kafka.retry.backoff.ms is what is waited before any new attempt"
_CONNECTING = "kafka.request.timeout.ms also limits connecting"

#: Settings of a Kafka producer that have nothing to act upon here: taken, with a warning.
WITHOUT_EFFECT = {
    "acks": _ALWAYS_SAFE,
    "enable.idempotence": _ALWAYS_SAFE,
    "retries": "kafka.delivery.timeout.ms limits how long a batch is sent again",
    "linger.ms": _NO_LINGER,
    "max.request.size": "a batch is as large as kafka.batch.size says, or one record",
    "partitioner.adaptive.partitioning.enable": "rows without a key take the partitions in turn",
    "partitioner.availability.timeout.ms": "rows without a key take the partitions in turn",
    "metadata.max.idle.ms": "what is known of topics is forgotten with its Python worker",
    "metadata.recovery.strategy": "the bootstrap servers are asked every time",
    "metadata.recovery.rebootstrap.trigger.ms": "the bootstrap servers are asked every time",
    "connections.max.idle.ms": "a connection is kept for as long as its Python worker lives",
    "reconnect.backoff.ms": _ONE_BACKOFF,
    "reconnect.backoff.max.ms": _ONE_BACKOFF,
    "retry.backoff.max.ms": _ONE_BACKOFF,
    "socket.connection.setup.timeout.ms": _CONNECTING,
    "socket.connection.setup.timeout.max.ms": _CONNECTING,
    "client.dns.lookup": "every address of a name is tried",
    "auto.include.jmx.reporter": _NO_METRICS,
    "enable.metrics.push": _NO_METRICS,
    "metric.reporters": _NO_METRICS,
    "metrics.num.samples": _NO_METRICS,
    "metrics.recording.level": _NO_METRICS,
    "metrics.sample.window.ms": _NO_METRICS,
}

#: What Spark's connector refuses too, or what cannot be had here.
REFUSED_SETTINGS = {
    "key.serializer": "keys are written as they are; make bytes of them with DataFrame functions",
    "value.serializer": "values are written as they are; make bytes of them with DataFrame "
    "functions",
    "partitioner.class": "partitioners are Java; give the partition in the column 'partition'",
    "interceptor.classes": "an interceptor could change what is written, and is Java",
    "config.providers": "providers are Java classes; give the value itself",
    "transactional.id": "every task has one of its own; see exactlyOnce and transactionalIdPrefix",
    "transaction.two.phase.commit.enable": "a task's transaction ends with the task",
}
_SETTINGS = Settings(PRODUCER_SETTINGS, WITHOUT_EFFECT, REFUSED_SETTINGS)

#: So much, uncompressed, goes into a batch: nearly what a broker takes by default.
BATCH_BYTES = 900_000
IN_FLIGHT = "max.in.flight.requests.per.connection"
IN_FLIGHT_MAX = 5
#: Long enough for a task that writes what has piled up.
TRANSACTION_TIMEOUT_MS = 5 * 60 * 1000
DEFAULT_PREFIX = "strom"

_CODECS = {name: codec for codec, name in CODEC_NAMES.items()}
#: The levels that codecs have, as Kafka takes them.
_LEVELS = {Codec.GZIP: (-1, 9), Codec.LZ4: (1, 17), Codec.ZSTD: (-131072, 22)}


@dataclass(frozen=True, slots=True)
class Delivery:
    """How a producer makes batches of rows, and how long it tries to be rid of them."""

    batch_bytes: int = BATCH_BYTES
    buffer_bytes: int = 32 * 1024 * 1024
    codec: Codec = Codec.NONE
    codec_level: int | None = None
    in_flight_max: int = IN_FLIGHT_MAX
    timeout_ms: int = 120_000
    metadata_age_ms: int = 5 * 60 * 1000
    ignores_keys: bool = False


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """All that a write is told."""

    connection: Connection
    delivery: Delivery = Delivery()
    #: None: each row says it.
    topic: str | None = None
    exactly_once: bool = False
    id_prefix: str = DEFAULT_PREFIX
    transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS
    #: What was set and has no effect, with the reason, to be told once.
    warnings: tuple[str, ...] = ()

    @classmethod
    def parse(
        cls,
        options: Mapping[str, str],
        *,
        streaming: bool,
        others: frozenset[str] = frozenset(),
    ) -> "WriteOptions":
        """Read the options; what cannot be honoured is refused by its name.

        `others` are names that somebody else honours, in lower case: a table that is written and
        read has the options of both.
        """
        given = {name.lower(): value.strip() for name, value in options.items()}
        warnings = [
            f"Option '{name}' has no effect: {why}."
            for name in given
            if (why := _check(name, others)) is not None
        ]
        warnings += tell_foreign(given, others, "reads")
        return _GivenToWrite(given).write_options(streaming, warnings)


class _GivenToWrite(Given):
    """The options of a write."""

    def write_options(self, streaming: bool, warnings: list[str]) -> WriteOptions:
        exactly_once = self.truth("exactlyOnce", streaming)
        if exactly_once and not streaming and not self._options.get("transactionalidprefix"):
            # Two writes of one micro-batch under one name: the second would be taken for done.
            raise OptionError(
                "Option 'exactlyOnce' in a batch write, which has it in foreachBatch only, needs "
                "the option 'transactionalIdPrefix': another one for each write of the function."
            )
        return WriteOptions(
            connection=self._connection(),
            delivery=self._delivery(warnings),
            topic=self._options.get("topic") or None,
            exactly_once=exactly_once,
            id_prefix=self._options.get("transactionalidprefix") or DEFAULT_PREFIX,
            transaction_timeout_ms=self.number(
                "kafka.transaction.timeout.ms", TRANSACTION_TIMEOUT_MS, least=1
            ),
            warnings=tuple(warnings),
        )

    def _connection(self) -> Connection:
        servers = self.servers()
        protocol = self._options.get("kafka.security.protocol", "PLAINTEXT").upper()
        if protocol != "PLAINTEXT":
            raise OptionError(
                f"Option 'kafka.security.protocol' = '{protocol}' is not supported: {PLAIN_ONLY}."
            )
        return Connection(
            bootstrap=servers,
            client_id=self.client_id(),
            receive_buffer_bytes=self.number("kafka.receive.buffer.bytes", -1, least=-1),
            send_buffer_bytes=self.number("kafka.send.buffer.bytes", -1, least=-1),
            request_timeout_ms=self.number("kafka.request.timeout.ms", 30_000, least=1),
            patience_ms=self.number("kafka.max.block.ms", 60_000, least=1, most=LONG_MAX),
            retry_backoff_ms=self.number("kafka.retry.backoff.ms", 100, most=LONG_MAX),
        )

    def _delivery(self, warnings: list[str]) -> Delivery:
        codec = self._codec()
        level = None
        if codec in _LEVELS:
            name = f"kafka.compression.{CODEC_NAMES[codec]}.level"
            least, most = _LEVELS[codec]
            level = self.number(name, 0, least=least, most=most) if name in self._options else None
        in_flight = self.number(f"{KAFKA}{IN_FLIGHT}", IN_FLIGHT_MAX, least=1)
        if in_flight > IN_FLIGHT_MAX:
            warnings.append(
                f"Option '{KAFKA}{IN_FLIGHT}' = {in_flight} is taken as {IN_FLIGHT_MAX}: of more "
                "than that a broker could not tell a batch that comes again."
            )
        return Delivery(
            batch_bytes=self.number("kafka.batch.size", BATCH_BYTES),
            buffer_bytes=self.number("kafka.buffer.memory", 32 << 20, least=1, most=LONG_MAX),
            codec=codec,
            codec_level=level,
            in_flight_max=min(in_flight, IN_FLIGHT_MAX),
            timeout_ms=self.number("kafka.delivery.timeout.ms", 120_000, least=1),
            metadata_age_ms=self.number("kafka.metadata.max.age.ms", 5 * 60 * 1000, most=LONG_MAX),
            ignores_keys=self.truth("kafka.partitioner.ignore.keys", False),
        )

    def _codec(self) -> Codec:
        name = self._options.get("kafka.compression.type", "none").lower()
        if name not in _CODECS:
            known = ", ".join(_CODECS)
            raise OptionError(f"Option 'kafka.compression.type' is one of {known}, not '{name}'.")
        return _CODECS[name]


def _check(name: str, others: frozenset[str]) -> str | None:
    """Refuse an option that writing cannot honour; return why one that it takes has no effect."""
    own = {each.lower(): each for each in SINK_OPTIONS}
    if name in own or name in others or name in SPARK_OPTIONS:
        return None
    if name.startswith(KAFKA):
        return _SETTINGS.check(name.removeprefix(KAFKA))
    settings = {f"{KAFKA}{each}": f"{KAFKA}{each}" for each in PRODUCER_SETTINGS}
    raise OptionError(f"Unknown option '{name}'.{nearest(name, own | settings)}")
