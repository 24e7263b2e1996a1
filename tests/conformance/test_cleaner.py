"""The cleaner where there is more than one of it, and where a log changes its directory.

Rows are named at each test; docs/requirements.md has the table of all.
"""

from tests.conformance.raw import Raw
from tests.conformance.test_compaction import EAGER, TOPIC, VALUE, read_all, send
from tests.patience import until

KEYS = 5
RECORDS = 60


def fill(node, topic):
    """Write a few keys over and over; what is sent."""
    node.create(topic, **TOPIC)
    sent = [(b"key %d" % (number % KEYS), b"%d" % number + VALUE) for number in range(RECORDS)]
    assert send(node, topic, sent) == []
    return [(offset, *pair) for offset, pair in enumerate(sent)]


def noted(directory, topic):
    """How far the directory's checkpoint says that the topic is clean; None if it does not."""
    path = directory / "cleaner-offset-checkpoint"
    lines = path.read_text().splitlines()[2:] if path.exists() else []
    found = (line.split() for line in lines)
    return next((int(offset) for name, _, offset in found if name == topic), None)


def end_of_clean(directory, topic):
    """Where the segment begins that is written to: more cannot be clean."""
    found = (directory / f"{topic}-0").glob("*.log")
    return max((int(each.stem) for each in found), default=-1)


def is_clean(directory, topic):
    return noted(directory, topic) == end_of_clean(directory, topic) != 0


def test_several_cleaners_clean_many_topics(book):
    """MSG-09, CMP-01, CMP-05: each log is one cleaner's, and nothing but older values is gone."""
    node = book({**EAGER, "log.cleaner.threads": "3"})
    topics = {f"preise-{number}": fill(node, f"preise-{number}") for number in range(5)}
    until(lambda: all(is_clean(node.directory, topic) for topic in topics))
    for topic, sent in topics.items():
        end = noted(node.directory, topic)
        newest = {key: offset for offset, key, _ in sent if offset < end}
        left = [each for each in sent if each[0] >= end or newest[each[1]] == each[0]]
        assert read_all(node, topic) == left


def test_a_log_that_changes_its_directory_is_as_clean_as_before(book, tmp_path):
    """CMP-03, DSK-09: what was compacted is not compacted once more."""
    both = [tmp_path / "one", tmp_path / "two"]
    node = book({**EAGER, "log.dirs": ",".join(map(str, both))})
    fill(node, "preise")
    (here,) = (each for each in both if (each / "preise-0").exists())
    (there,) = set(both) - {here}
    until(lambda: is_clean(here, "preise"))
    # Now the cleaner leaves it alone, whether it is clean or not.
    node.set("preise", "min.cleanable.dirty.ratio", "1")
    clean, before = noted(here, "preise"), read_all(node, "preise")
    topics = [{"name": "preise", "partitions": [0]}]
    with Raw(node.bootstrap) as raw:
        asked = {"dirs": [{"path": str(there), "topics": topics}]}
        (told,) = raw.ask("alter_replica_log_dirs", 2, asked)["results"]
    assert told["partitions"][0]["error_code"] == "none"
    until(lambda: noted(there, "preise") == clean)
    until(lambda: noted(here, "preise") is None)
    assert read_all(node, "preise") == before


def test_a_topic_that_comes_back_is_not_taken_for_clean(book):
    """CMP-03: what is noted of a log goes with it, or its successor would not be compacted."""
    node = book(EAGER)
    fill(node, "preise")
    until(lambda: is_clean(node.directory, "preise"))
    node.delete("preise")
    node.create("preise", **TOPIC)
    until(lambda: noted(node.directory, "preise") is None)
