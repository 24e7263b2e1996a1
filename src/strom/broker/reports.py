"""What the controller is told of this broker's log directories (KIP-858, KIP-1066).

    a partition that is not where the metadata says    assign_directories, many at once
    a directory that failed                            a heartbeat that leaves it out
    a directory that is cordoned, or no longer         a heartbeat with all that are

In this order: the controller takes those offline of which it knows that they are in a directory
that failed. Both are said again until the controller has taken them.
"""

import asyncio
import logging
from itertools import islice
from uuid import UUID

from strom.broker.replicas import Place, Replicas
from strom.log.directory import LogDirectory
from strom.metadata.broker_decisions import Heartbeat
from strom.metadata.controller import Controller
from strom.metadata.records import Record
from strom.replicated.runtime import Runtime
from strom.replication.partition import Partition
from strom.wire.errors import KafkaError

log = logging.getLogger("strom.reports")

#: How many partitions one decision is about. Kafka's brokers send at most 2250 in a request;
#: here a decision keeps the loop, for less than ten milliseconds.
ASSIGNMENTS_AT_ONCE = 250
#: How long to wait before the controller is told again of what it did not take.
RETRY_SECONDS = 1.0


class Reports:
    """Tells the controller what became of the directories of one broker."""

    def __init__(
        self, node_id: int, replicas: Replicas, controller: Controller, runtime: Runtime[Record]
    ) -> None:
        self._node_id = node_id
        self._replicas = replicas
        self._controller = controller
        self._runtime = runtime
        #: The broker's, once it is registered.
        self.epoch = -1
        #: The cordoned directories that the controller knows of.
        self._cordoned: tuple[UUID, ...] = ()

    async def begin(self) -> None:
        """Tell that this broker serves, and of the directories that get no new partitions."""
        await self._beat(())

    async def run(self, metadata: LogDirectory) -> None:
        """Tell what there is to tell; return when too little is left to go on with."""
        replicas = self._replicas
        while True:
            await replicas.news.wait()
            replicas.news.clear()
            if metadata.failed is not None or not replicas.online_directories:
                return
            try:
                await self._tell_places()
                await self._tell_state()
            except KafkaError as error:
                log.warning("The controller cannot be told of the log directories: %s", error)
                replicas.news.set()
                await asyncio.sleep(RETRY_SECONDS)

    async def note_moved(self, partition: Partition, directory: LogDirectory) -> None:
        """Tell in which directory a partition is now; return once that is certain."""
        await self._assign({(partition.topic_id, partition.index): directory})

    async def _tell_places(self) -> None:
        unnoted = self._replicas.unnoted
        while unnoted:
            told = dict(islice(unnoted.items(), ASSIGNMENTS_AT_ONCE))
            await self._assign(told)
            for place, directory in told.items():
                # It may have gone elsewhere meanwhile.
                if unnoted.get(place) is directory:
                    del unnoted[place]

    async def _assign(self, places: dict[Place, LogDirectory]) -> None:
        asked = [(each.id, place) for place, each in places.items() if each.id is not None]
        # A refusal of a single one means that it is gone.
        await self._runtime.execute(
            self._controller.assign_directories, self._node_id, self.epoch, asked
        )

    async def _tell_state(self) -> None:
        failed = [each.id for each in self._replicas.directories if each.failed is not None]
        lost = tuple(each for each in failed if each is not None)
        if lost or self._cordoned != self._cordoned_now():
            await self._beat(lost)

    async def _beat(self, lost: tuple[UUID, ...]) -> None:
        cordoned = self._cordoned_now()
        beat = Heartbeat(
            self._node_id, self.epoch, offline_directories=lost, cordoned_directories=cordoned
        )
        await self._runtime.execute(self._controller.heartbeat, beat)
        self._cordoned = cordoned

    def _cordoned_now(self) -> tuple[UUID, ...]:
        cordoned = [each.id for each in self._replicas.directories if each.is_cordoned]
        return tuple(each for each in cordoned if each is not None)
