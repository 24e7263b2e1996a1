"""Checkpoints of a directory: one writer at a time, and never older offsets over newer ones."""

import asyncio
from uuid import UUID

import pytest

from strom.broker.host import Host
from strom.broker.replicas import Replicas
from strom.log.checkpoints import LOG_START
from strom.log.directory import LogDirectory, Meta
from strom.testing.disk import FakeDisk


@pytest.fixture
def directory():
    disk = FakeDisk()
    LogDirectory.format(disk, "/data", Meta(1, "cluster", UUID(int=9)))
    return LogDirectory.open(disk, "/data")


def test_two_who_checkpoint_at_once_write_one_after_the_other(directory):
    under_way, most = 0, 0

    async def offload(work):
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.get_running_loop().run_in_executor(None, int)
        result = work()
        under_way -= 1
        return result

    async def run():
        replicas = Replicas(Host(disk=directory.disk, offload=offload), 1, [directory], None)
        writes = [replicas.checkpoint(directory, LOG_START, lambda _: 0) for _ in range(5)]
        await asyncio.gather(*writes)

    asyncio.run(run())
    assert most == 1
    assert directory.failed is None


def test_an_error_of_the_disk_takes_the_directory_out_of_use_and_ends_the_turn(directory):
    async def offload(_):
        raise OSError(5, "Input/output error")

    async def run():
        replicas = Replicas(Host(disk=directory.disk, offload=offload), 1, [directory], None)
        for _ in range(2):
            await replicas.checkpoint(directory, LOG_START, lambda _: 0)

    asyncio.run(run())
    assert directory.failed is not None
