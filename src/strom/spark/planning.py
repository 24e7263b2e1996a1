"""What is to be read, found out on Spark's driver: partitions, their offsets, what is new or gone.

Batch and stream ask the same things; which answers are a loss of data is decided here too.
"""

import logging
import re
from collections.abc import Collection, Mapping

from strom.spark.clock import pause
from strom.spark.cluster import Cluster, Topic
from strom.spark.failure import DataLossError, OptionError
from strom.spark.limits import ByOffset, ByTime, Limit, NoMatch
from strom.spark.option_names import nearest
from strom.spark.options import ReadOptions, Subscription
from strom.spark.places import EARLIEST, LATEST, Place, name_places
from strom.spark.ranges import Range, cut
from strom.spark.task import Task

log = logging.getLogger("strom.spark")

_HOW_TO_GO_ON = 'To go on without these records set the option "failOnDataLoss" to "false".'

Topics = Mapping[str, Topic]


def report_loss(what: str, fails: bool) -> None:
    """Raise, or warn: what was lost is never passed over in silence."""
    if fails:
        raise DataLossError(f"{what}. {_HOW_TO_GO_ON}")
    log.warning("%s. Reading goes on without.", what)


class Planner:
    """Asks the cluster what one read needs to know."""

    def __init__(self, options: ReadOptions) -> None:
        self.options = options
        self.cluster = Cluster(options.connection)
        self._warnings = list(options.warnings)

    def topics(self) -> dict[str, Topic]:
        """Return the topics that are subscribed to and there."""
        while self._warnings:
            log.warning("%s", self._warnings.pop(0))
        subscription = self.options.subscription
        if subscription.pattern is None:
            names = subscription.topics or {topic for topic, _ in subscription.assigned}
            return self.cluster.topics(names)
        matching = re.compile(subscription.pattern)
        return {
            name: topic
            for name, topic in self.cluster.topics(None).items()
            if not topic.is_internal and matching.fullmatch(name)
        }

    def subscribed(self) -> dict[str, Topic]:
        """As `topics`, for a start: a topic that was named has to be there."""
        found = self.topics()
        subscription = self.options.subscription
        missing = set(subscription.topics) - found.keys()
        if missing:
            raise OptionError(" ".join(tell_missing(self.cluster, missing, "subscribe")))
        gone = {place for place in subscription.assigned if not _is_there(place, found)}
        if gone:
            raise OptionError(f"Partition {name_places(gone)} does not exist (option 'assign').")
        return found

    def resolve(self, limit: Limit, topics: Topics, option: str) -> dict[Place, int]:
        """Return the offset that the limit means in each partition."""
        places = partitions_of(topics, self.options.subscription)
        if limit.each and limit.each.keys() != places:
            by_time = isinstance(limit, ByTime)
            name = f"{option}ByTimestamp" if by_time else option
            raise OptionError(
                f"Option '{name}' must name every partition: it has {name_places(limit.each)}, "
                f"there are {name_places(places)}."
                + ("" if by_time else " -1 is the end of a partition, -2 its beginning.")
            )
        wanted = dict(limit.each) if limit.each else dict.fromkeys(places, limit.everywhere or 0)
        if isinstance(limit, ByTime):
            return self._at_times(wanted, limit.no_match, topics)
        fixed = {place: offset for place, offset in wanted.items() if offset >= 0}
        asked = {place: time for place, time in wanted.items() if time in (LATEST, EARLIEST)}
        return fixed | self.cluster.offsets(asked, topics)

    def _at_times(
        self, times: dict[Place, int], no_match: NoMatch, topics: Topics
    ) -> dict[Place, int]:
        found = self.cluster.offsets(times, topics)
        without = {place for place, offset in found.items() if offset < 0}
        if without and no_match is NoMatch.ERROR:
            raise OptionError(
                f"Nothing in {name_places(without)} is as new as the time that was asked for. With "
                "the option 'startingOffsetsByTimestampStrategy' = 'latest' such partitions are "
                "read from their end."
            )
        return found | self.cluster.offsets(dict.fromkeys(without, LATEST), topics)

    def latest(self, topics: Topics, known: Mapping[Place, int]) -> dict[Place, int]:
        """Return where the partitions end; one that ends before what is known is asked again.

        A broker that was just elected may be behind for a moment.
        """
        places = partitions_of(topics, self.options.subscription)
        attempts = self.options.offset_attempts
        while True:
            found = self.cluster.offsets(dict.fromkeys(places, LATEST), topics)
            attempts -= 1
            if attempts <= 0 or all(found.get(place, at) >= at for place, at in known.items()):
                return found
            pause(self.options.offset_interval_ms)

    def earliest(self, places: Collection[Place], topics: Topics) -> dict[Place, int]:
        """Return where the partitions begin, those that there are."""
        return self.cluster.offsets(dict.fromkeys(places, EARLIEST), topics)

    def tasks(
        self, start: Mapping[Place, int], end: Mapping[Place, int], topics: Topics
    ) -> list[Task]:
        """Cut what is between the offsets into tasks."""
        ranges = [Range(place, start[place], end[place]) for place in sorted(end) if place in start]
        pieces = cut(ranges, self.options.min_partitions, self.options.max_records)
        return [
            Task(place, topics[place[0]].id, first, last, topics[place[0]].leaders[place[1]])
            for place, first, last in pieces
        ]

    def lose(self, what: str) -> None:
        """Say that something is lost."""
        report_loss(what, self.options.fails_on_data_loss)


def tell_missing(cluster: Cluster, names: Collection[str], option: str) -> list[str]:
    """Return what to say of topics that are not there, with the nearest name that is."""
    known = {name: name for name in cluster.topics(None)}
    return [
        f"Topic {name} does not exist (option '{option}', at {cluster.connection.servers})."
        + (nearest(name, known) or f" Create it first: strom topic create {name}.")
        for name in sorted(names)
    ]


def plan_batch(planner: Planner) -> list[Task]:
    """Return the tasks of a batch read: what there is now between the two points."""
    topics = planner.subscribed()
    start = planner.resolve(planner.options.starting, topics, "startingOffsets")
    ending = planner.options.ending
    end = planner.resolve(ending, topics, "endingOffsets")
    check_order(start, end)
    if start.keys() != end.keys():
        gone = start.keys() ^ end.keys()
        planner.lose(f"Partition {name_places(gone)} was deleted before it was read")
    if isinstance(ending, ByOffset) and ending.each:
        end = _up_to_what_is_there(planner, topics, end)
    return planner.tasks(start, end, topics)


def _up_to_what_is_there(
    planner: Planner, topics: Topics, end: dict[Place, int]
) -> dict[Place, int]:
    latest = planner.cluster.offsets(dict.fromkeys(end, LATEST), topics)
    beyond = {place for place, offset in end.items() if offset > latest.get(place, offset)}
    if beyond:
        planner.lose(f"{name_places(beyond)} ends before the option 'endingOffsets' says")
    return {place: min(offset, latest.get(place, offset)) for place, offset in end.items()}


def partitions_of(topics: Topics, subscription: Subscription) -> set[Place]:
    """Return the partitions that are read."""
    if subscription.assigned:
        return {place for place in subscription.assigned if _is_there(place, topics)}
    return {(name, number) for name, topic in topics.items() for number in topic.leaders}


def _is_there(place: Place, topics: Topics) -> bool:
    topic, number = place
    return topic in topics and number in topics[topic].leaders


def check_order(start: Mapping[Place, int], end: Mapping[Place, int]) -> None:
    """Refuse a read that would end before it begins."""
    for place, first in sorted(start.items()):
        if end.get(place, first) < first:
            raise OptionError(
                f"{name_places({place})} would be read from offset {first} to {end[place]}: "
                "the end is before the start."
            )
