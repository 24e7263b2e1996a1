"""Conversations whose answers were written down while Apache Kafka gave them.

A case is a function that talks to a broker; every answer it gets is noted, with what differs from
run to run (ids, ports, times, the names of the test's topics) replaced by what it is. The notes
of Apache Kafka are in `answers/`, and each case is played to Strom and to Apache Kafka: one must
answer as the notes say, the other proves that the notes are still true.

    STROM_REWRITE_ANSWERS=1 pytest tests/conformance -k kafka    writes the notes anew
"""

import difflib
import fcntl
import json
import os
from operator import itemgetter
from pathlib import Path
from uuid import UUID

import pytest

from tests.conformance.batches import headers
from tests.conformance.raw import Raw
from tests.patience import is_done, until

ANSWERS = Path(__file__).parent / "answers"
#: Fields that tell about the machine or the run, not about the behaviour.
VARYING = {
    "throttle_time", "host", "port", "cluster_id", "log_dir", "producer_id", "controller_epoch",
    "log_append_time_ms", "finalized_features_epoch", "total_bytes", "usable_bytes", "size",
    "high_watermark_of_quorum", "last_fetch_timestamp", "last_caught_up_timestamp",
    "last_timestamp", "documentation", "replica_directory_id", "current_txn_start_offset",
}  # fmt: skip


class Transcript:
    """A conversation with one broker, noted down."""

    def __init__(self, bootstrap, name):
        self.raw = Raw(bootstrap)
        self.bootstrap = bootstrap
        self.name = name
        self.lines = []
        self.settled = 0

    def topic(self, suffix=""):
        """A topic name of this conversation's own."""
        return f"{self.name}{suffix}"

    def create(self, suffix="", partitions=1, **config):
        """Make a topic and wait until it can be used; its id. Nothing is noted."""
        settings = [{"name": k.replace("_", "."), "value": str(v)} for k, v in config.items()]
        new = {"name": self.topic(suffix), "num_partitions": partitions, "configs": settings}
        asked = {"topics": [new | {"replication_factor": 1}], "timeout": 10000}
        (made,) = self.raw.ask("create_topics", 7, asked)["topics"]
        assert made["error_code"] == "none", made
        wait_usable(self.raw, self.topic(suffix), partitions)
        return made["topic_id"]

    def settle(self):
        """Wait until what was changed before is seen by everybody.

        Changes are seen in their order, so a topic that is made later and can be used proves
        it. The second covers a broker that took the first in along with the change.
        """
        for _ in range(2):
            self.settled += 1
            self.create(f"-settled-{self.settled}")

    def ask(self, api, version, values=None, *, only=None):
        """Ask, note the answer (or what `only` makes of it), and return it whole."""
        answer = self.raw.ask(api, version, values or {})
        while answer.get("error_code") == "coordinator_load_in_progress":
            answer = self.raw.ask(api, version, values or {})
        noted = only(answer) if only else answer
        self.lines.append({f"{api} v{version}": self.steady(noted)})
        return answer

    def notes(self):
        """What was noted, as it is in every run."""
        return self.lines

    def close(self):
        """Hang up wherever else this was connected to."""

    def steady(self, value, key=""):
        """What is the same in every run."""
        if key in VARYING:
            return f"<{key}>"
        if isinstance(value, dict):
            return {name: self.steady(each, name) for name, each in value.items()}
        if isinstance(value, list):
            return in_order([self.steady(each, key) for each in value])
        if isinstance(value, bytes):
            return [f"{h.base_offset}-{h.last_offset}: {h.count}" for h in headers(value)]
        if isinstance(value, UUID):
            return "<id>"
        return value.replace(self.name, "~") if isinstance(value, str) else value


def in_order(items):
    """Topics by their names, partitions by number: Apache Kafka has them in a hash's order."""
    for key, kind in (("name", str), ("partition_index", int)):
        if all(isinstance(each, dict) and isinstance(each.get(key), kind) for each in items):
            return sorted(items, key=itemgetter(key))
    return items


def wait_usable(raw, topic, partitions):
    """Ask until every partition answers: a broker may say that it leads one a little later."""
    asked = [{"partition_index": n, "timestamp": -1} for n in range(partitions)]
    wanted = {"topics": [{"name": topic, "partitions": asked}]}
    until(
        lambda: raw.ask("list_offsets", 7, wanted)["topics"][0]["partitions"],
        lambda found: all(map(is_done, found)),
    )


def play(case, bootstrap, name, kind=Transcript, **extra):
    """Play a case to a broker; the notes."""
    transcript = kind(bootstrap, name)
    with transcript.raw:
        try:
            case(transcript, **extra)
        finally:
            transcript.close()
    return transcript.notes()


def is_peer(request):
    """Whether it is Apache Kafka that a test talks to."""
    return "kafka" in request.node.callspec.params.values()


def check(group, label, lines, *, peer):
    """Compare the notes with Apache Kafka's, or write those anew if told so and this is it."""
    path = ANSWERS / f"{group}.json"
    if peer and os.environ.get("STROM_REWRITE_ANSWERS"):
        rewrite(path, label, lines)
    expected = json.loads(path.read_text())[label]
    if lines != expected:
        pytest.fail(difference(expected, lines), pytrace=False)


def rewrite(path, label, lines):
    ANSWERS.mkdir(exist_ok=True)
    with open(path, "a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        notes = json.loads(file.read() or "{}")
        notes[label] = lines
        file.seek(0)
        file.truncate()
        file.write(dumped(notes))


def dumped(notes):
    """One line per answer, so that a change of one is a change of one line."""
    blocks = []
    for label, lines in sorted(notes.items()):
        rows = ",\n".join("    " + json.dumps(line, ensure_ascii=False) for line in lines)
        blocks.append(f"  {json.dumps(label)}: [\n{rows}\n  ]")
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def difference(expected, answered):
    """Show where the answers differ from Apache Kafka's."""
    before, after = (
        json.dumps(each, indent=1, default=str).splitlines() for each in (expected, answered)
    )
    lines = difflib.unified_diff(before, after, "Apache Kafka", "here", n=8, lineterm="")
    return "\n".join(lines)
