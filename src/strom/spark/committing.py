"""The progress of a query as the offsets of a consumer group, so that every tool shows its lag.

The group has no members, and nothing is read from it: where a query goes on is in its
checkpoint. So a commit that fails costs nothing but a warning, and nobody waits for one but for
the last, which would be lost with the process.
"""

import logging
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from strom.spark.options import ReadOptions
from strom.spark.places import Place, Progress

log = logging.getLogger("strom.spark")

GROUP_PREFIX = "spark-strom-source"
#: How long the last commit of a query is waited for.
LAST_COMMIT_SECONDS_MAX = 5.0


def group_of(options: ReadOptions, progress: Progress) -> str:
    """Return the group's name: the one that was given, or one that the query keeps for good."""
    return options.group_id or f"{options.group_prefix or GROUP_PREFIX}-{progress.query}"


class Commits:
    """Commits one query's progress."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._admin: Any = None
        self._under_way: Future[Any] | None = None
        self._sent: Mapping[Place, int] = {}

    def commit(self, progress: Progress, *, is_last: bool) -> None:
        """Commit the offsets, unless they are the same or the commit before is still under way."""
        seconds = LAST_COMMIT_SECONDS_MAX if is_last else 0
        self._look_at_answer(seconds)
        # Where all topics are gone, or none has come yet, there is nothing to commit.
        is_known = progress.query and progress.offsets
        if self._under_way is None and is_known and progress.offsets != self._sent:
            self._under_way = self._send(group_of(self._options, progress), progress.offsets)
            self._sent = progress.offsets
            self._look_at_answer(seconds)

    def _send(self, group: str, offsets: Mapping[Place, int]) -> "Future[Any]":
        # Loaded here: a worker that only reads has no use for the client library.
        from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
        from confluent_kafka.admin import AdminClient

        if self._admin is None:
            connection = self._options.connection
            self._admin = AdminClient(
                {
                    "bootstrap.servers": connection.servers,
                    "client.id": connection.client_id,
                    "log_level": 0,
                }
            )
        partitions = [TopicPartition(*place, offset) for place, offset in offsets.items()]
        request = ConsumerGroupTopicPartitions(group, partitions)
        answers: dict[str, Future[Any]] = self._admin.alter_consumer_group_offsets([request])
        return answers[group]

    def _look_at_answer(self, seconds: float) -> None:
        if self._under_way is None:
            return
        try:
            answer = self._under_way.result(seconds)
        except TimeoutError:
            return
        except Exception as error:  # noqa: BLE001 - whatever it is, the query goes on
            log.warning("The progress could not be committed to the group: %s", error)
        else:
            failed = [str(each.error) for each in answer.topic_partitions if each.error]
            if failed:
                log.warning("The progress could not be committed to the group: %s", failed[0])
        self._under_way = None
