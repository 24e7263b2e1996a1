"""What the brokers know of topics: their partitions, ids and leaders, and where offsets are.

Asked anew every time: a query runs for months, and partitions are added, moved and deleted
meanwhile. What fails for a reason that passes (an election, a broker that starts) is asked again
until the connection's patience is at an end.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from uuid import UUID

from strom.spark.clock import Patience
from strom.spark.failure import UnreachableError
from strom.spark.link import Address, drop_link, link_to
from strom.spark.options import Connection
from strom.spark.places import Place, name_places
from strom.wire.errors import ErrorCode, KafkaError
from strom.wire.lazy import lazy

if TYPE_CHECKING:
    from kio.schema.list_offsets.v7 import request as list_offsets
    from kio.schema.metadata.v12 import request as metadata
    from kio.static import primitive
else:
    metadata = lazy("kio.schema.metadata.v12.request")
    list_offsets = lazy("kio.schema.list_offsets.v7.request")
    primitive = lazy("kio.static.primitive")

MISSING = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
#: What another attempt, perhaps at another broker, may cure.
PASSING = frozenset(
    {
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)

Found = TypeVar("Found")


class Topic(NamedTuple):
    """A topic: its id, and who leads each partition (None: nobody at the moment)."""

    id: UUID
    is_internal: bool
    leaders: dict[int, Address | None]


class Cluster:
    """The brokers behind the bootstrap servers."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        #: Who answered last goes first.
        self._addresses = list(connection.bootstrap)

    def topics(self, names: Iterable[str] | None) -> dict[str, Topic]:
        """Return the topics with these names, those that there are; None: all topics."""
        wanted = None
        if names is not None:
            wanted = tuple(
                metadata.MetadataRequestTopic(topic_id=None, name=name) for name in names
            )
        request = metadata.MetadataRequest(
            topics=wanted,
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )
        return self._until_it_works(lambda: _read_topics(self._ask_any(request)))

    def offsets(self, times: Mapping[Place, int], topics: Mapping[str, Topic]) -> dict[Place, int]:
        """Return the offset at each time (-1: the end, -2: the beginning); -1 if none is there.

        Partitions that are gone meanwhile are left out.
        """
        if not times:
            return {}
        known = [topics]

        def look() -> dict[Place, int]:
            try:
                return self._offsets(times, known[0])
            except (KafkaError, UnreachableError):
                known[0] = self.topics({topic for topic, _ in times})
                raise

        return self._until_it_works(look)

    def _offsets(self, times: Mapping[Place, int], topics: Mapping[str, Topic]) -> dict[Place, int]:
        by_leader: dict[Address, dict[Place, int]] = defaultdict(dict)
        for (name, number), time in times.items():
            topic = topics.get(name)
            if topic is None or number not in topic.leaders:
                continue
            leader = topic.leaders[number]
            if leader is None:
                raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, name_places({(name, number)}))
            by_leader[leader][name, number] = time
        found: dict[Place, int] = {}
        for leader, wanted in by_leader.items():
            request = _offsets_request(wanted, self.connection.read_committed)
            for topic in self._ask(leader, request).topics:
                for each in topic.partitions:
                    place = str(topic.name), int(each.partition_index)
                    _raise_if_failed(each.error_code, name_places({place}))
                    found[place] = int(each.offset)
        return found

    def _until_it_works(self, attempt: Callable[[], Found]) -> Found:
        patience = Patience(self.connection.patience_ms, self.connection.retry_backoff_ms)
        while True:
            try:
                return attempt()
            except UnreachableError as error:
                patience.wait(error)
            except KafkaError as error:
                if error.code not in PASSING:
                    raise
                patience.wait(error)

    def _ask_any(self, request: Any) -> Any:  # noqa: ANN401 - any of kio's
        """Ask the first broker that answers."""
        reasons = []
        for address in list(self._addresses):
            try:
                answer = self._ask(address, request)
            except UnreachableError as error:
                reasons.append(str(error))
                self._addresses.remove(address)
                self._addresses.append(address)
            else:
                return answer
        raise UnreachableError("; ".join(reasons))

    def _ask(self, address: Address, request: Any) -> Any:  # noqa: ANN401 - any of kio's
        try:
            return link_to(address, self.connection).ask(request)
        except UnreachableError:
            drop_link(address, self.connection)
            raise


def _read_topics(answer: Any) -> dict[str, Topic]:  # noqa: ANN401 - kio's
    brokers = {each.node_id: (str(each.host), int(each.port)) for each in answer.brokers}
    topics = {}
    for each in answer.topics:
        if each.error_code in MISSING:
            continue
        _raise_if_failed(each.error_code, str(each.name))
        leaders = {
            int(part.partition_index): brokers.get(part.leader_id) for part in each.partitions
        }
        assert each.topic_id is not None
        topics[str(each.name)] = Topic(each.topic_id, bool(each.is_internal), leaders)
    return topics


def _raise_if_failed(code: int, what: str) -> None:
    if code:
        raise KafkaError(ErrorCode(int(code)), what)


def _offsets_request(times: Mapping[Place, int], read_committed: bool) -> object:
    by_topic: dict[str, list[Any]] = defaultdict(list)
    for (topic, partition), time in times.items():
        by_topic[topic].append(
            list_offsets.ListOffsetsPartition(
                partition_index=primitive.i32(partition), timestamp=primitive.i64(time)
            )
        )
    return list_offsets.ListOffsetsRequest(
        replica_id=-1,
        isolation_level=primitive.i8(int(read_committed)),
        topics=tuple(
            list_offsets.ListOffsetsTopic(name=topic, partitions=tuple(partitions))
            for topic, partitions in by_topic.items()
        ),
    )
