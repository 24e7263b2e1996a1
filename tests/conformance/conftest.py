"""Brokers and clients for the conformance tests, which share one broker and own their topics."""

import itertools
import os

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests import nodes
from tests.conformance.book import Book
from tests.conformance.raw import Raw

NAMES = itertools.count()


@pytest.fixture(scope="session")
def strom():
    """The broker under test: a Strom process, or the one that STROM_TEST_BOOTSTRAP names."""
    with nodes.running_strom("conformance") as process:
        yield process


@pytest.fixture(scope="module")
def broker(request):
    """A broker for the tests of one module, with its SETTINGS."""
    name = request.path.stem.removeprefix("test_").replace("_", "-")
    with nodes.running_strom(name, **request.module.SETTINGS) as process:
        yield process


@pytest.fixture(params=["strom", "kafka"])
def either(request):
    """Strom, then Apache Kafka: what holds for one must hold for the other."""
    if request.param == "strom" and nodes.outside_bootstrap():
        pytest.skip("STROM_TEST_BOOTSTRAP replaces Strom")
    return request.getfixturevalue(request.param)


@pytest.fixture
def strom_only(strom):
    """The broker under test, for what cannot be asked of one that somebody else runs."""
    if strom.directory is None:
        pytest.skip("this test needs the broker's own directory or process")
    return strom


@pytest.fixture
def raw(strom):
    with Raw(strom.bootstrap) as connection:
        yield connection


@pytest.fixture
def name():
    """A name that no other test uses."""
    return f"t{os.getpid()}-{next(NAMES)}"


@pytest.fixture(scope="session")
def admin(strom):
    return AdminClient({"bootstrap.servers": strom.bootstrap, "log_level": 0})


@pytest.fixture
def make_topic(admin, name):
    """A function that creates a topic and returns its name."""
    made = itertools.count()

    def make(partitions=1, **config):
        topic = f"{name}-{next(made)}"
        settings = {key.replace("_", "."): str(value) for key, value in config.items()}
        new = NewTopic(topic, partitions, 1, config=settings)
        admin.create_topics([new])[topic].result()
        return topic

    return make


@pytest.fixture
def topic(make_topic):
    return make_topic()


@pytest.fixture
def book(strom_brokers):
    """A maker of books; the settings are those of the broker."""

    def make(settings=None, **options):
        return Book(strom_brokers(settings, **options))

    return make


@pytest.fixture(scope="session")
def patient():
    """A broker that flushes all that it writes, so that everything has to be waited for."""
    directory = nodes.new_directory("patient")
    process = nodes.StromProcess(directory, **{"log.flush.interval.messages": 1})
    try:
        yield process.start()
        assert process.process.poll() is None, process.log()
    finally:
        process.remove()
