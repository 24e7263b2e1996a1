"""Every option of Spark's Kafka connector, and what becomes of it here.

An option is honoured, or has no meaning here and is told to have none, or is refused with the
reason. Which of these is decided in this table and nowhere else; a name that is in no table is
refused with the nearest name that is.

Names are compared in lower case: Spark hands them over so.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import NamedTuple

from strom.spark.failure import OptionError

KAFKA = "kafka."

PLAIN_ONLY = "connections here are plain: name a PLAINTEXT listener of the cluster"
#: Whole families of settings that are refused, to readers and to writers.
REFUSED_FAMILIES = {"ssl.": PLAIN_ONLY, "sasl.": PLAIN_ONLY, "security.providers": PLAIN_ONLY}


class Settings(NamedTuple):
    """The settings of a Kafka client, and what becomes of each of them."""

    honoured: tuple[str, ...]
    #: Taken, with a warning that says why they have nothing to act upon.
    without_effect: Mapping[str, str]
    #: With the reason.
    refused: Mapping[str, str]

    def check(self, setting: str) -> str | None:
        """Refuse one that cannot be honoured; return why one that is taken has no effect."""
        if setting in self.honoured:
            return None
        if setting in self.without_effect:
            return self.without_effect[setting]
        reason = self.refused.get(setting)
        for family, why in REFUSED_FAMILIES.items():
            if setting.startswith(family):
                reason = why
        if reason is not None:
            raise OptionError(f"Option '{KAFKA}{setting}' is not supported: {reason}.")
        names = *self.honoured, *self.without_effect, *self.refused
        known = {each: f"{KAFKA}{each}" for each in names}
        raise OptionError(f"Unknown Kafka setting '{KAFKA}{setting}'.{nearest(setting, known)}")


def nearest(name: str, known: Mapping[str, str]) -> str:
    """Return a hint at the name that was probably meant, if there is one."""
    found = get_close_matches(name, known, n=1, cutoff=0.6)
    return f" Did you mean '{known[found[0]]}'?" if found else ""


#: Options of the source itself, as Spark's connector writes them.
SOURCE_OPTIONS = (
    "assign",
    "subscribe",
    "subscribePattern",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsets",
    "startingOffsetsByTimestampStrategy",
    "endingTimestamp",
    "endingOffsetsByTimestamp",
    "endingOffsets",
    "failOnDataLoss",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "kafkaConsumer.pollTimeoutMs",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "maxRecordsPerPartition",
    "groupIdPrefix",
    "includeHeaders",
    # Not of that connector: its frames are read anew in any case.
    "readAnew",
)

#: Settings of a Kafka consumer that mean the same here.
CONSUMER_SETTINGS = (
    "bootstrap.servers",
    "group.id",
    "isolation.level",
    "client.id",
    "check.crcs",
    "fetch.max.bytes",
    "fetch.min.bytes",
    "fetch.max.wait.ms",
    "max.partition.fetch.bytes",
    "receive.buffer.bytes",
    "send.buffer.bytes",
    "request.timeout.ms",
    "default.api.timeout.ms",
    "retry.backoff.ms",
    "security.protocol",
)

_NO_MEMBER = "no consumer joins a group here: Spark hands out the work, and progress is committed"
_NO_POLL = "there is no polling here: what a fetch brings becomes one Arrow batch"
_NO_CACHE = "metadata is looked up for every micro-batch, not kept for a time"
_NO_METRICS = "there is no Java client whose metrics could be reported"

#: Settings of a Kafka consumer that have nothing to act upon here: taken, with a warning.
WITHOUT_EFFECT = {
    "max.poll.records": _NO_POLL,
    "max.poll.interval.ms": _NO_POLL,
    "session.timeout.ms": _NO_MEMBER,
    "heartbeat.interval.ms": _NO_MEMBER,
    "partition.assignment.strategy": _NO_MEMBER,
    "group.protocol": _NO_MEMBER,
    "group.remote.assignor": _NO_MEMBER,
    "group.instance.id": _NO_MEMBER,
    "share.acknowledgement.mode": _NO_MEMBER,
    "share.acquire.mode": _NO_MEMBER,
    "auto.commit.interval.ms": "nothing is committed by the clock, but after each micro-batch",
    "allow.auto.create.topics": "reading never creates a topic",
    "exclude.internal.topics": "an internal topic is read when it is named, and not by a pattern",
    "metadata.max.age.ms": _NO_CACHE,
    "metadata.recovery.strategy": _NO_CACHE,
    "metadata.recovery.rebootstrap.trigger.ms": _NO_CACHE,
    "connections.max.idle.ms": "a connection is kept for as long as its Python worker lives",
    "reconnect.backoff.ms": "kafka.retry.backoff.ms is what is waited before any new attempt",
    "reconnect.backoff.max.ms": "kafka.retry.backoff.ms is what is waited before any new attempt",
    "retry.backoff.max.ms": "kafka.retry.backoff.ms is what is waited before any new attempt",
    "socket.connection.setup.timeout.ms": "kafka.request.timeout.ms also limits connecting",
    "socket.connection.setup.timeout.max.ms": "kafka.request.timeout.ms also limits connecting",
    "client.rack": "records are fetched from the leader of their partition",
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
    "auto.offset.reset": "say with startingOffsets where a new query begins; after that its "
    "checkpoint knows",
    "key.deserializer": "keys come as bytes; take them apart with DataFrame functions",
    "value.deserializer": "values come as bytes; take them apart with DataFrame functions",
    "enable.auto.commit": "progress is committed after each micro-batch, never by the clock",
    "interceptor.classes": "an interceptor could change what is read, and is Java",
    "config.providers": "providers are Java classes; give the value itself",
}
_SETTINGS = Settings(CONSUMER_SETTINGS, WITHOUT_EFFECT, REFUSED_SETTINGS)
_BY_LOWER_NAME = {name.lower(): name for name in SOURCE_OPTIONS}


def check_option(name: str, *, others: frozenset[str] = frozenset()) -> str | None:
    """Refuse an option that reading cannot honour; return why one that it takes has no effect.

    `others` are names that somebody else honours, in lower case: a table that is read and
    written has the options of both.
    """
    if name in _BY_LOWER_NAME or name in others:
        return None
    if name.startswith(KAFKA):
        return _SETTINGS.check(name.removeprefix(KAFKA))
    known = {**_BY_LOWER_NAME, **{each: each for each in others}}
    settings = {f"{KAFKA}{each}": f"{KAFKA}{each}" for each in CONSUMER_SETTINGS}
    raise OptionError(f"Unknown option '{name}'.{nearest(name, known | settings)}")
