"""Brings what the quorum commits to the broker: a new image, then its followers, in this order.

    quorum ──committed records──▶ image ──▶ settings ──▶ replicas ──▶ coordinators ──▶ who waits

Nobody else replaces the image or the settings. When `wait_published` returns, this broker acts
on everything that had been decided when it was called.

What was committed together, a decision, is in one image or in none. Many decisions may take several
images; between two of them, and while a large one is put together, others have their turn.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Iterator, Sequence

from strom.broker.admission import OVERRIDES, address_limits
from strom.broker.context import Parts
from strom.broker.quorum import Committed, Quorum
from strom.metadata.config_decisions import ALL_BROKERS
from strom.metadata.delta import Delta, Step, advance
from strom.metadata.image import Image
from strom.metadata.records import BROKER_RESOURCE
from strom.metadata.settings.definition import SettingsError
from strom.metadata.settings.rules import SettingRules

log = logging.getLogger("strom.publisher")

#: So many records take a few milliseconds to apply and to follow.
RECORDS_AT_ONCE = 100


class Publisher:
    """The way from the metadata log to this broker's parts."""

    def __init__(self, quorum: Quorum, rules: SettingRules) -> None:
        self._quorum = quorum
        self._rules = rules
        self._published_offset = 0
        #: Taken while the parts follow the image: nobody else changes them meanwhile.
        self._turn = asyncio.Lock()
        #: Offsets in ascending order, each with who waits for it.
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def wait_published(self) -> None:
        """Return once this broker acts on all that is decided by now."""
        end_offset = self._quorum.end_offset
        if end_offset <= self._published_offset:
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append((end_offset, waiter))
        await waiter

    async def run(self, parts: Parts) -> None:
        """Publish for as long as the broker runs."""
        while True:
            await self._quorum.wait_for_commits()
            for portion in cut(self._quorum.take_committed()):
                await self.publish(parts, portion)
                await asyncio.sleep(0)
            if self._quorum.is_snapshot_due():
                await self._quorum.write_snapshot(parts.image)

    async def publish(self, parts: Parts, committed: Sequence[Committed]) -> None:
        """Take in what was committed, and act on it."""
        delta = await self._next(parts.image, committed)
        async with self._turn:
            parts.image = delta.after
            await self._follow_settings(parts, delta)
            await parts.replicas.follow(delta.after, delta, parts.settings)
            for coordinators in (parts.groups, parts.transactions):
                await coordinators.follow(delta.after, parts.settings, delta)
        self._published_offset = delta.after.end_offset
        while self._waiting and self._waiting[0][0] <= self._published_offset:
            waiter = self._waiting.popleft()[1]
            if not waiter.done():
                waiter.set_result(None)

    async def make_up(self, parts: Parts) -> None:
        """Begin the logs for which there was no room, if there is some now."""
        async with self._turn:
            if await parts.replicas.create_unmade(parts.image, parts.settings):
                for coordinators in (parts.groups, parts.transactions):
                    coordinators.take_up()

    def catch_up(self, parts: Parts) -> None:
        """Take in what was committed while there is nobody yet to act on it."""
        committed = self._quorum.take_committed()
        records, last = records_of(committed), committed[-1]
        parts.image = advance(
            parts.image, records, end_offset=last.end_offset, leader_epoch=last.leader_epoch
        ).after

    async def _next(self, image: Image, committed: Sequence[Committed]) -> Delta:
        """Return what leads to the next image; a large one is put together in turns."""
        records, last = records_of(committed), committed[-1]
        step = Step(image)
        for start in range(0, len(records), RECORDS_AT_ONCE):
            if start:
                await asyncio.sleep(0)
            step.take(records[start : start + RECORDS_AT_ONCE])
        return step.delta(end_offset=last.end_offset, leader_epoch=last.leader_epoch)

    def apply_settings(self, parts: Parts) -> None:
        """Put the settings that were changed at run time over those of the file."""
        image = parts.image
        parts.settings = parts.settings.with_dynamic(
            image.config((BROKER_RESOURCE, str(parts.node_id))),
            image.config((BROKER_RESOURCE, ALL_BROKERS)),
        )
        self._rules.settings = parts.settings
        for name, reason in parts.settings.ignored.items():
            log.warning("%s is set at run time without effect: %s", name, reason)

    async def _follow_settings(self, parts: Parts, delta: Delta) -> None:
        ours = {(BROKER_RESOURCE, str(parts.node_id)), (BROKER_RESOURCE, ALL_BROKERS)}
        if delta.configs.isdisjoint(ours):
            return
        before = parts.settings
        self.apply_settings(parts)
        changed = sorted(parts.settings.changed_from(before))
        if changed:
            log.info("Settings changed at run time: %s", ", ".join(changed))
            await parts.replicas.reconfigure(delta.after, parts.settings)
        if OVERRIDES in changed:
            await self.find_addresses(parts)

    async def find_addresses(self, parts: Parts) -> None:
        """Have the limits of single addresses follow the settings, unless a host is not found.

        As in Kafka, the log tells of that, and not the answer to who has set it: what is set for
        all brokers, each of them looks up for itself.
        """
        settings, host = parts.settings, parts.host
        if not settings.text(OVERRIDES):
            parts.address_limits = {}
            return
        try:
            found = await host.offload(lambda: address_limits(settings, host.network))
        except SettingsError as error:
            log.warning("The limits of single addresses stay as they were: %s", error)
        else:
            parts.address_limits = found


def records_of(committed: Sequence[Committed]) -> list[object]:
    """Return the records of all decisions."""
    return [record for each in committed for record in each.records]


def cut(committed: Sequence[Committed]) -> Iterator[list[Committed]]:
    """Yield the decisions a few at a time, the oldest first, each of them whole."""
    portion: list[Committed] = []
    count = 0
    for each in committed:
        if portion and count + len(each.records) > RECORDS_AT_ONCE:
            yield portion
            portion, count = [], 0
        portion.append(each)
        count += len(each.records)
    if portion:
        yield portion
