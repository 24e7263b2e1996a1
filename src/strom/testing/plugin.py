"""A pytest plugin: `strom_broker`, a broker for a test, and `strom_brokers`, a maker of them.

    def test_it(strom_broker):
        producer = Producer({"bootstrap.servers": strom_broker.bootstrap})

Installed with Strom; nothing is imported before a test asks for a broker.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from strom.testing.broker import LocalBroker


@pytest.fixture
def strom_brokers() -> Iterator[Callable[..., "LocalBroker"]]:
    """Return a function that starts a broker with the settings given to it."""
    from strom.testing.broker import LocalBroker

    made: list[LocalBroker] = []

    def make(settings: dict[str, str] | None = None, **options: object) -> LocalBroker:
        broker = LocalBroker(settings, **options)  # type: ignore[arg-type]
        made.append(broker)
        return broker.start()

    yield make
    for broker in made:
        broker.stop()
        broker.remove()


@pytest.fixture
def strom_broker(strom_brokers: Callable[..., "LocalBroker"]) -> "LocalBroker":
    """Return a broker that serves, on its own port, with its own data."""
    return strom_brokers()
