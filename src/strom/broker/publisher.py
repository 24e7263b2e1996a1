"""Brings what the quorum commits to the broker: a new image, then its followers, in this order.

    quorum ──committed records──▶ image ──▶ settings ──▶ replicas ──▶ coordinators ──▶ who waits

Nobody else replaces the image or the settings. When `wait_published` returns, this broker acts
on everything that had been decided when it was called.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence

from strom.broker.context import Parts
from strom.broker.quorum import Committed, Quorum
from strom.metadata.config_decisions import ALL_BROKERS
from strom.metadata.delta import Delta, advance
from strom.metadata.records import BROKER_RESOURCE
from strom.metadata.settings.rules import SettingRules

log = logging.getLogger("strom.publisher")


class Publisher:
    """The way from the metadata log to this broker's parts."""

    def __init__(self, quorum: Quorum, rules: SettingRules) -> None:
        self._quorum = quorum
        self._rules = rules
        self._published_offset = 0
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
            await self.publish(parts, self._quorum.take_committed())
            if self._quorum.is_snapshot_due():
                await self._quorum.write_snapshot(parts.image)

    async def publish(self, parts: Parts, committed: Sequence[Committed]) -> None:
        """Take in what was committed, and act on it."""
        delta = self._advance(parts, committed)
        self._follow_settings(parts, delta)
        await parts.replicas.follow(delta.after, delta, parts.settings)
        for coordinators in (parts.groups, parts.transactions):
            await coordinators.follow(delta.after, parts.settings, delta)
        self._published_offset = delta.after.end_offset
        while self._waiting and self._waiting[0][0] <= self._published_offset:
            waiter = self._waiting.popleft()[1]
            if not waiter.done():
                waiter.set_result(None)

    def catch_up(self, parts: Parts) -> None:
        """Take in what was committed while there is nobody yet to act on it."""
        self._advance(parts, self._quorum.take_committed())

    def _advance(self, parts: Parts, committed: Sequence[Committed]) -> Delta:
        records = [record for each in committed for record in each.records]
        last = committed[-1]
        delta = advance(
            parts.image, records, end_offset=last.end_offset, leader_epoch=last.leader_epoch
        )
        parts.image = delta.after
        return delta

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

    def _follow_settings(self, parts: Parts, delta: Delta) -> None:
        ours = {(BROKER_RESOURCE, str(parts.node_id)), (BROKER_RESOURCE, ALL_BROKERS)}
        if delta.configs.isdisjoint(ours):
            return
        before = parts.settings
        self.apply_settings(parts)
        changed = sorted(parts.settings.changed_from(before))
        if changed:
            log.info("Settings changed at run time: %s", ", ".join(changed))
            parts.replicas.reconfigure(delta.after, parts.settings)
