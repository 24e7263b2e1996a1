"""A pytest plugin: `strom_broker`, a broker for a test, and `strom_brokers`, a maker of them.

    def test_it(strom_broker):
        producer = Producer({"bootstrap.servers": strom_broker.bootstrap})

Installed with Strom; nothing is imported before a test asks for a broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from strom.broker.host import Host
    from strom.testing.broker import LocalBroker


@pytest.fixture
def strom_brokers() -> Iterator[Callable[..., LocalBroker]]:
    """Return a function that starts a broker with the settings given to it."""
    from strom.testing.broker import LocalBroker

    with ExitStack() as made:

        def make(
            settings: Mapping[str, str] | None = None,
            *,
            directory: Path | None = None,
            host: Host | None = None,
        ) -> LocalBroker:
            return made.enter_context(LocalBroker(settings, directory=directory, host=host))

        yield make


@pytest.fixture
def strom_broker(strom_brokers: Callable[..., LocalBroker]) -> LocalBroker:
    """Return a broker that serves, on its own port, with its own data."""
    return strom_brokers()
