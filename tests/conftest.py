"""What all tests share: brokers as processes, Apache Kafka, and word of what could not be run.

`STROM_TEST_BOOTSTRAP=HOST:PORT` runs the conformance tests against another broker: against
Apache Kafka they prove themselves, against Strom they prove Strom.
"""

import asyncio
import inspect
import signal

import pytest

from tests import nodes
from tests.effort import load_profile

load_profile()
# In the background of a shell Ctrl-C is not heard, nor would it be by what the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

#: Why a test was not run, and which; told at the end, so that nothing is skipped in silence.
NOT_RUN = {}


@pytest.fixture
def broker_process():
    """A maker of Strom processes; their settings are its arguments (with _ for .)."""
    made = []

    def make(**settings):
        named = {name.replace("_", "."): value for name, value in settings.items()}
        made.append(nodes.StromProcess(nodes.new_directory("process"), **named))
        return made[-1].start()

    yield make
    for each in made:
        each.remove()


@pytest.fixture(scope="session")
def kafka():
    """Apache Kafka, started when the first test asks for it."""
    if reason := nodes.java_missing():
        pytest.skip(reason)
    peer = nodes.KafkaProcess(nodes.new_directory("kafka")).start()
    yield peer
    peer.remove()


@pytest.fixture(scope="session")
def kafka_tool():
    """A function that runs one of Apache Kafka's tools."""
    if reason := nodes.java_missing():
        pytest.skip(reason)
    return nodes.kafka_tool


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Run a test that is a coroutine, in a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else "skipped"
        NOT_RUN.setdefault(reason.removeprefix("Skipped: "), []).append(item.nodeid)


def pytest_terminal_summary(terminalreporter):
    if NOT_RUN:
        terminalreporter.section("not proven on this machine")
    for reason, tests in sorted(NOT_RUN.items()):
        terminalreporter.write_line(f"{reason}:")
        for test in sorted(set(tests)):
            terminalreporter.write_line(f"    {test}")
