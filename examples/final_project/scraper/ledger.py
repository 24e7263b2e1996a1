"""The topics as the scraper's memory: what is in them was scraped, what is not was not.

All facts of one page are one transaction. After any failure, of the process or of a write, the way
on is the same: open again. That ends what was left undone, shuts out a scraper of the same name
that still runs, and reads back which facts the topics hold. Only then is anything written. So every
fact is there once for readers of committed records, whatever failed in between.
"""

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from examples.final_project.scraper.facts import CONTENT_HEADER, NAME_HEADER, Fact, Seen

SECONDS_MAX = 30.0
POLL_SECONDS = 1.0
MESSAGES_PER_POLL = 10_000


class ReplacedError(Exception):
    """Another scraper of the same name has taken over; this one must end."""


class Ledger:
    """Writes facts, each once; knows which are written."""

    def __init__(self, bootstrap: str, name: str, topics: list[str]) -> None:
        self._bootstrap = bootstrap
        self._name = name
        self._topics = topics
        self._producer: Producer | None = None
        self._seen = Seen()

    @property
    def facts_known(self) -> int:
        """Return how many facts are known to be in the topics."""
        return len(self._seen)

    def write(self, facts: list[Fact], fetched_ms: int) -> int:
        """Write those that are new, all or none; return how many.

        A KafkaException means that they are not known to be written: give them again.
        """
        try:
            producer = self._opened()
            new = self._seen.new(facts)
            if new:
                self._transact(producer, new, fetched_ms)
        except KafkaException as error:
            self._producer = None
            if error.args[0].code() in (KafkaError._FENCED, KafkaError.PRODUCER_FENCED):
                raise ReplacedError(self._name) from error
            raise
        for fact in new:
            self._seen.learn(fact.topic, fact.name, fact.content)
        return len(new)

    def _opened(self) -> Producer:
        if self._producer is None:
            producer = Producer(
                {
                    "bootstrap.servers": self._bootstrap,
                    "transactional.id": self._name,
                    "enable.idempotence": True,
                    "acks": "all",
                    "compression.type": "zstd",
                    # What fails is raised; librdkafka need not say it too.
                    "log_level": 2,
                }
            )
            producer.init_transactions(SECONDS_MAX)
            self._seen = read_back(self._bootstrap, self._topics)
            self._producer = producer
        return self._producer

    def _transact(self, producer: Producer, facts: list[Fact], fetched_ms: int) -> None:
        producer.begin_transaction()
        for fact in facts:
            headers = {
                **fact.headers,
                NAME_HEADER: fact.name,
                CONTENT_HEADER: fact.content,
                "fetched-ms": str(fetched_ms),
            }
            producer.produce(
                fact.topic,
                fact.value,
                fact.key,
                timestamp=fact.at_ms,
                headers=list(headers.items()),
            )
        producer.commit_transaction(SECONDS_MAX)


def read_back(bootstrap: str, topics: list[str]) -> Seen:
    """Return what the topics hold, read to their ends."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "final-project-scraper-read-back",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    try:
        known = consumer.list_topics(timeout=SECONDS_MAX).topics
        open_partitions = {
            (topic, number)
            for topic in topics
            if topic in known
            for number in known[topic].partitions
        }
        consumer.assign([TopicPartition(*each, OFFSET_BEGINNING) for each in open_partitions])
        return read_to_ends(consumer, open_partitions)
    finally:
        consumer.close()


def read_to_ends(consumer: Consumer, open_partitions: set[tuple[str, int]]) -> Seen:
    """Return what the partitions hold; a broker that says nothing any more is given up."""
    seen = Seen()
    silent = 0.0
    while open_partitions:
        silent += POLL_SECONDS
        for message in consumer.consume(MESSAGES_PER_POLL, POLL_SECONDS):
            if (error := message.error()) is None:
                silent = 0.0
                _learn(seen, message)
            elif error.code() == KafkaError._PARTITION_EOF:
                silent = 0.0
                open_partitions.discard((message.topic(), message.partition()))
            elif not error.retriable():
                raise KafkaException(error)
        if silent >= SECONDS_MAX:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "reading back what is there"))
    return seen


def _learn(seen: Seen, message: Message) -> None:
    topic, headers = message.topic(), dict(message.headers() or ())
    name, content = headers.get(NAME_HEADER), headers.get(CONTENT_HEADER)
    if topic is not None and isinstance(name, bytes) and isinstance(content, bytes):
        seen.learn(topic, name.decode(), content.decode())
