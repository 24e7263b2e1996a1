"""Arguments that nobody means, and some do: bytes that are no text, numbers that fit nowhere.

Each is one line that says so (exit code 2), or is taken for what it is. A word that is not UTF-8 is
for Python a text with lone surrogates, which librdkafka's bindings do not survive.
"""

import json

import pytest

from strom.cli.main import main
from tests.conformance.batches import batch, record
from tests.conformance.raw import Raw

NO_TEXT = "a\udcff"
HUGE = str(10**30)


@pytest.mark.parametrize(
    "command",
    [
        ("topic", "create", NO_TEXT),
        ("topic", "create", "t", "--config", f"retention.ms={NO_TEXT}"),
        ("topic", "describe", NO_TEXT),
        ("topic", "list", "-b", NO_TEXT),
        ("topic", "list", "-X", f"{NO_TEXT}=1"),
        ("config", "set", "--topic", "t", f"retention.ms={NO_TEXT}"),
        ("group", "describe", NO_TEXT),
        ("produce", NO_TEXT, "v"),
        ("produce", "t", "v", "--header", f"{NO_TEXT}=v"),
        ("consume", NO_TEXT),
    ],
    ids=" ".join,
)
def test_a_word_that_is_no_text_is_one_line(strom, command):
    result = strom(*command)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr in {f"strom: {each} is not UTF-8 text\n" for each in told(command)}


def told(command):
    """The words that are no text, as the bytes that somebody gave."""
    return [repr(each.encode(errors="surrogateescape")) for each in command if NO_TEXT in each]


@pytest.mark.parametrize("command", ["up", "broker start"])
def test_a_broker_is_given_text_too(command, tmp_path, capsys):
    config = tmp_path / "server.properties"
    config.write_text(f"log.dirs={tmp_path}/data\n")
    words = command.split()
    words += ["--config", str(config)] if words[0] == "broker" else ["--dir", str(tmp_path)]
    assert main([*words, "--override", f"broker.rack={NO_TEXT}"]) == 2
    assert capsys.readouterr().err == "strom: b'broker.rack=a\\xff' is not UTF-8 text\n"
    assert list(tmp_path.iterdir()) == [config]


def test_keys_and_values_are_any_bytes(on_cluster, topic):
    on_cluster("produce", topic, NO_TEXT, "--key", NO_TEXT, "--header", f"name={NO_TEXT}")
    on_cluster("produce", topic, "-K", "\udcfe", "--file", "-", text=b"k\xfev\n")
    read = on_cluster("consume", topic, "--from-beginning", "--until", "end", "--json").stdout
    first, second = sorted(map(json.loads, read.splitlines()), key=lambda each: each["timestamp"])
    assert (first["key_base64"], first["value_base64"]) == ("Yf8=", "Yf8=")
    assert first["headers_base64"] == [["name", "Yf8="]]
    assert (second["key"], second["value"]) == ("k", "v")


def test_a_header_whose_name_is_no_text_stops_no_reader(on_cluster, bootstrap, topic):
    with Raw(bootstrap) as raw:
        records = record(0, b"v", headers=[(b"\xff", b"")])
        data = {"index": 1, "records": batch([b"v"], records=records)}
        topics = [{"name": topic, "partition_data": [data]}]
        raw.ask("produce", 9, {"acks": 1, "timeout": 10_000, "topic_data": topics})
    result = on_cluster("consume", topic, "--from-beginning", "--until", "end", "--json")
    (line,) = map(json.loads, result.stdout.splitlines())
    assert (line["value"], line["headers"]) == ("v", [])
    assert f"{topic}-1 at offset 0: headers left out" in result.stderr


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (r'{"value": "\ud800"}', "value is no text: it has half a character"),
        (r'{"value": {"\ud800": 1}}', "value is no text: it has half a character"),
        (
            r'{"value": 1, "headers": {"\ud800": "v"}}',
            "headers is no text: it has half a character",
        ),
        (
            r'{"value": 1, "headers": {"h": "\ud800"}}',
            "headers is no text: it has half a character",
        ),
        ("[" * 100_000, "is not JSON: it is nested too deeply"),
        ('{"value": 1, "headers": "ab"}', "headers should be an object or a list of pairs"),
        ('{"value": 1, "headers": ["ab"]}', "headers should be an object or a list of pairs"),
        ('{"value": 1, "headers": [[1, "b"]]}', "headers should be an object or a list of pairs"),
    ],
    ids=[
        "value",
        "in a value",
        "header name",
        "header value",
        "nested",
        "headers: text",
        "headers: texts",
        "headers: numbered",
    ],
)
def test_json_that_stands_for_no_record_is_one_line(on_cluster, topic, line, fault):
    result = on_cluster("produce", topic, "--from-json", text=line + "\n", code=1)
    assert result.stderr.startswith("strom: line 1")
    assert result.stderr.endswith(f"{fault}\n")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "command",
    [
        ("topic", "create", "t", "--partitions", HUGE),
        ("topic", "create", "t", "--replication-factor", HUGE),
        ("topic", "alter", "t", "--partitions", HUGE),
        ("topic", "size", "--per-day", "1TB", "--days", "inf"),
        ("topic", "size", "--per-day", "1TB", "--replication-factor", HUGE),
        ("topic", "size", "--throughput", f"{HUGE}TB"),
        ("topic", "size", "--throughput", "1PB", "--per-producer", "1B"),
        ("topic", "size", "--per-day", "9" * 400),
        ("perf", "produce", "t", "--size", HUGE),
        ("perf", "latency", "t", "--size", HUGE),
        ("storage", "format", "nowhere", "--node-id", HUGE),
        ("group", "describe", "--watch", "inf"),
        ("group", "describe", "--watch", "1e10"),
        ("transaction", "find-hanging", "--max-transaction-timeout", "inf"),
        ("up", "--memory", "--dir", "somewhere"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_is_a_wrong_use(strom, command):
    result = strom(*command)
    assert result.exit_code == 2, (result.output, result.exception)
    assert isinstance(result.exception, SystemExit)
