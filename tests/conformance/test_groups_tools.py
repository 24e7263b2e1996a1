"""Apache Kafka's own tools and its consumer in groups, as the book calls them.

Rows: GRP-01, GRP-02, GRP-05, GRP-18, OFS-08, OFS-09, OFS-10. Each tool costs a second, so each
test does much.
"""

import re
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tests import nodes, patience
from tests.conformance.raw import Raw
from tests.patience import PATIENCE_SECONDS

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(600)]

FIRST_FLIGHTS = """\
rakete0:Countdown beendet
rakete1:Countdown beendet
rakete1:Liftoff
rakete1:Atmosphäre verlassen
rakete0:Liftoff
rakete0:Atmosphäre verlassen
rakete0:Vorbereitung Wiedereintritt
rakete1:Vorbereitung Wiedereintritt
rakete0:Wiedereintritt erfolgreich
rakete1:Wiedereintritt erfolgreich
rakete1:Landung erfolgreich
rakete0:Landung erfolgreich
"""
NEXT_FLIGHTS = """\
rakete2:Countdown beendet
rakete3:Countdown beendet
rakete2:Liftoff
rakete2:Atmosphäre verlassen
rakete3:Liftoff
rakete3:Atmosphäre verlassen
"""


class Tools:
    """Apache Kafka's tools against one broker."""

    def __init__(self, bootstrap, kafka_tool):
        self.bootstrap, self.kafka_tool = bootstrap, kafka_tool

    def run(self, name, *arguments, text="", fails=False):
        """Run a tool; all that it said."""
        done = self.kafka_tool(name, "--bootstrap-server", self.bootstrap, *arguments, text=text)
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        return done.stdout + done.stderr

    def groups(self, *arguments, **other):
        return self.run("kafka-consumer-groups", *arguments, **other)

    def send(self, topic, text):
        key = "--reader-property", "parse.key=true", "--reader-property", "key.separator=:"
        self.run("kafka-console-producer", "--topic", topic, *key, text=text)

    def together(self, *calls):
        """Run calls side by side: what a tool does first is to wait for its JVM."""
        with ThreadPoolExecutor(2) as pool:
            return [future.result() for future in [pool.submit(*call) for call in calls]]


@pytest.fixture
def tools(strom, kafka_tool):
    return Tools(strom.bootstrap, kafka_tool)


@pytest.fixture
def watching(strom):
    """A maker of console consumers that read until they are told to stop."""
    made = []

    def make(*arguments):
        made.append(Console(strom.bootstrap, *arguments))
        return made[-1]

    yield make
    for each in made:
        each.stop()


def reading(topic, group):
    """The book's way to read a topic in a group, with the keys."""
    where = "--topic", topic, "--group", group, "--from-beginning"
    return *where, "--formatter-property", "print.key=true"


class Tool:
    """A tool of Apache Kafka that runs until it is stopped, and whose lines are heard."""

    def __init__(self, *command, errors=subprocess.DEVNULL):
        self.process = subprocess.Popen(
            [sys.executable, nodes.PEER, "tool", *command],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        self.thread = threading.Thread(target=self.listen, daemon=True)
        self.thread.start()

    def listen(self):
        for line in self.process.stdout:
            self.hear(line)

    def stop(self):
        if self.process.poll() is None:
            # Not SIGINT: what a shell runs in the background is deaf to it, and so its children.
            self.process.terminate()
        self.process.wait(PATIENCE_SECONDS)
        self.thread.join()
        self.process.stdout.close()


class Console(Tool):
    """A console consumer in a group; it leaves when it is told to end."""

    def __init__(self, bootstrap, *arguments):
        #: What it printed; and when it has ended, what it said beside that.
        self.lines, self.said = [], ""
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed when it has ended
        where = "--bootstrap-server", bootstrap, "--command-property", "auto.commit.interval.ms=100"
        super().__init__("kafka-console-consumer", *where, *arguments, errors=self.errors)

    def hear(self, line):
        self.lines.append(line.rstrip("\n"))

    def stop(self):
        """End it; the lines that it printed."""
        super().stop()
        if not self.errors.closed:
            self.errors.seek(0)
            self.said = self.errors.read()
            self.errors.close()
        return self.lines


#: A JVM on a busy machine takes its time.
until = partial(patience.until, seconds=2 * PATIENCE_SECONDS)


def state_of(bootstrap, group):
    with Raw(bootstrap) as raw:
        (told,) = raw.ask("describe_groups", 6, {"groups": [group]})["groups"]
    return told["group_state"], len(told["members"])


def test_a_group_reads_once_and_shares_what_comes_next(tools, watching, make_topic, name):
    """GRP-01, GRP-02, GRP-05, GRP-18, CON-05."""
    topic, group = make_topic(partitions=2), f"metriken-{name}"
    tools.send(topic, FIRST_FLIGHTS)
    told = tools.run(
        "kafka-console-consumer",
        *reading(topic, group),
        "--max-messages",
        12,
        "--timeout-ms",
        60_000,
    )
    assert "Processed a total of 12 messages" in told
    for rocket in ("rakete0", "rakete1"):
        flown = [each.partition("\t")[2] for each in told.splitlines() if rocket in each]
        assert flown == [
            each.partition(":")[2] for each in FIRST_FLIGHTS.splitlines() if rocket in each
        ], "in order"
    again = watching(*reading(topic, group))
    until(lambda: state_of(tools.bootstrap, group) == ("Stable", 1))
    assert again.stop() == []
    assert "Processed a total of 0 messages" in again.said
    # What the group has read before is shown to none of them, although they ask for the beginning.
    two = [watching(*reading(topic, group)) for _ in range(2)]
    until(lambda: state_of(tools.bootstrap, group) == ("Stable", 2))
    tools.send(topic, NEXT_FLIGHTS)
    until(lambda: sum(len(each.lines) for each in two) == 6)
    rockets = sorted({line.partition("\t")[0] for line in each.stop()} for each in two)
    assert sorted(map(sorted, rockets)) == [["rakete2"], ["rakete3"]]


def test_kafka_consumer_groups(tools, watching, make_topic, name):
    """OFS-08, OFS-09, OFS-10."""
    topic, group = make_topic(partitions=2), f"flugueberwachung-{name}"
    tools.send(topic, "rakete0:Countdown beendet\nrakete1:Countdown beendet\nrakete1:Liftoff\n")
    consumer = watching(*reading(topic, group))
    until(lambda: len(consumer.lines) == 3)
    until(lambda: state_of(tools.bootstrap, group) == ("Stable", 1))
    until(lambda: committed(tools.bootstrap, group, topic) == [2, 1])
    look_at_the_living(tools, group, topic)
    consumer.stop()
    until(lambda: state_of(tools.bootstrap, group) == ("Empty", 0))
    tools.send(topic, "rakete1:Landung erfolgreich\n" + "rakete0:Liftoff\n" * 4)
    look_at_the_empty(tools, group, topic)


def committed(bootstrap, group, topic):
    with Raw(bootstrap) as raw:
        told = raw.ask("offset_fetch", 9, {"groups": [{"group_id": group, "topics": None}]})
    topics = [each for one in told["groups"] for each in one["topics"] if each["name"] == topic]
    partitions = [each for one in topics for each in one["partitions"]]
    by_number = sorted(partitions, key=lambda each: each["partition_index"])
    return [each["committed_offset"] for each in by_number]


def rows(text, group):
    """The rows of a table that are about the group."""
    return [line.split() for line in text.splitlines() if line.startswith(group)]


def look_at_the_living(tools, group, topic):
    one = "--group", group
    offsets, members, states, kinds = tools.together(
        (tools.groups, "--describe", *one),
        (tools.groups, "--describe", "--members", "--verbose", *one),
        (tools.groups, "--list", "--state", "stable"),
        (tools.groups, "--list", "--type", "classic"),
    )
    told = {int(row[2]): row for row in rows(offsets, group)}
    assert sorted(told) == [0, 1]
    assert [told[each][3:6] for each in (0, 1)] == [["2", "2", "0"], ["1", "1", "0"]]
    for row in told.values():
        assert row[1] == topic
        assert re.fullmatch(r"console-consumer-[0-9a-f-]{36}", row[6])
        assert row[7:] == ["/127.0.0.1", "console-consumer"]
    (member,) = rows(members, group)
    assert member[1] == told[0][6]
    assert member[4] == "2"
    assert f"{topic}:0,1" in member
    assert rows(states, group) == [[group, "Stable"]]
    assert rows(kinds, group) == [[group, "Classic"]]
    state, refused = tools.together(
        (tools.groups, "--describe", "--state", *one),
        (tools.groups, "--delete", *one),
    )
    (row,) = rows(state, group)
    assert row[1:] == [tools.bootstrap, "(1)", "range", "Stable", "1"]
    assert "GroupNotEmptyException: The group is not empty." in refused


def look_at_the_empty(tools, group, topic):
    one = "--group", group
    offsets, states = tools.together(
        (tools.groups, "--describe", *one), (tools.groups, "--list", "--state")
    )
    assert "has no active members" in offsets
    told = sorted(row[2:] for row in rows(offsets, group))
    nobody = ["-", "-", "-"]
    assert told == [["0", "2", "3", "1", *nobody], ["1", "1", "5", "4", *nobody]]
    assert rows(states, group) == [[group, "Empty"]]
    deleted = tools.groups("--delete", *one)
    assert f"Deletion of requested consumer groups ('{group}') was successful." in deleted
    assert committed(tools.bootstrap, group, topic) == []
    again, missing = tools.together(
        (tools.groups, "--delete", *one),
        (tools.groups, "--describe", *one),
    )
    assert "GroupIdNotFoundException" in again
    assert f"Group {group} not found." in missing
