"""The command line against a cluster: Strom's own, or any Kafka."""

import json
import signal

import pytest

pytestmark = pytest.mark.slow

#: Kafka's own test vectors of murmur2, as its Java client computes it (UtilsTest).
MURMUR2 = {
    "21": -973932308,
    "foobar": -790332482,
    "a-little-bit-long-string": -985981536,
    "a-little-bit-longer-string": -1486304829,
    "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    "abc": 479470107,
}


def lines(result):
    return result.stdout.splitlines()


def read_all(on_cluster, topic, *more):
    return lines(on_cluster("consume", topic, "--from-beginning", "--until", "end", *more))


def test_a_topic_comes_and_goes(on_cluster, topic):
    """TOP-02, TOP-03, TOP-04, TOP-06, TOP-07."""
    result = on_cluster("topic", "create", f"{topic}.two", "-c", "retention.ms=1000", "-n", "2")
    assert result.stdout == f"Created topic {topic}.two.\n"
    assert {topic, f"{topic}.two"} <= set(lines(on_cluster("topic", "list")))

    head, *partitions = lines(on_cluster("topic", "describe", f"{topic}.two"))
    assert head.startswith(f"Topic: {topic}.two\tTopicId: ")
    assert head.endswith("\tPartitionCount: 2\tReplicationFactor: 1\tConfigs: retention.ms=1000")
    assert [line.split("\t")[2] for line in partitions] == ["Partition: 0", "Partition: 1"]

    on_cluster("topic", "alter", f"{topic}.two", "--partitions", "5")
    (described,) = json.loads(on_cluster("topic", "describe", f"{topic}.two", "--json").stdout)
    assert described["partition_count"] == 5
    assert [each["partition"] for each in described["partitions"]] == [0, 1, 2, 3, 4]

    result = on_cluster("topic", "delete", f"{topic}.two")
    assert result.stdout == f"Deleted topic {topic}.two.\n"
    assert f"{topic}.two" not in lines(on_cluster("topic", "list"))


def test_what_a_cluster_refuses_is_said_in_its_own_words(on_cluster, topic):
    """TOP-02, TOP-05, TOP-08, TOP-12."""

    def refused(*arguments):
        result = on_cluster(*arguments, code=1)
        assert result.stderr.count("\n") == 1
        return result.stderr

    assert f"Topic '{topic}' already exists." in refused("topic", "create", topic)
    assert (
        "larger than available brokers"
        in (text := refused("topic", "create", f"{topic}2", "-r", "99"))
        or "Unable to replicate the partition 99 time(s)" in text
    )
    assert "2 would not be an increase" in refused("topic", "alter", topic, "-n", "2")
    missing = refused("topic", "describe", topic[:-1])
    assert f"Topic '{topic[:-1]}' does not exist as expected" in missing
    assert f"did you mean '{topic}'?" in missing
    assert "does not exist as expected" in refused("topic", "delete", f"{topic}-no")
    assert "does not exist as expected" in refused("consume", f"{topic}-no")


@pytest.mark.parametrize("command", [("produce",), ("perf", "produce"), ("perf", "latency")])
def test_a_name_that_no_topic_can_have_is_one_line(on_cluster, command):
    """TOP-12."""
    result = on_cluster(*command, "no name", code=1)
    assert result.stderr == "strom: Topic name 'no name' is not valid\n"


def test_a_record_that_is_too_large_is_one_line(on_cluster, topic):
    result = on_cluster("produce", topic, "--whole", text="x" * 2_000_000, code=1)
    assert "Message size too large" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["77", "nobody"])
def test_a_broker_that_is_not_there_is_not_waited_for(on_cluster, name):
    result = on_cluster("config", "describe", "--broker", name, code=1)
    assert f"there is no broker {name}" in result.stderr


def test_creating_what_is_there_may_be_all_right(on_cluster, topic):
    result = on_cluster("topic", "create", topic, "--if-not-exists", "--json")
    assert json.loads(result.stdout) == {"created": []}


def test_a_topic_that_is_refused_leaves_the_others_told_of(on_cluster, topic):
    """TOP-02."""
    result = on_cluster("topic", "create", topic, f"{topic}.a", "bad name", code=1)
    assert result.stdout == f"Created topic {topic}.a.\n"
    assert f"Topic '{topic}' already exists.; " in result.stderr
    assert "'bad name'" in result.stderr
    assert result.stderr.count("\n") == 1

    result = on_cluster("topic", "create", topic, f"{topic}.b", "--json", code=1)
    assert json.loads(result.stdout) == {"created": [f"{topic}.b"]}
    on_cluster("topic", "delete", f"{topic}.a", f"{topic}.b")


def test_a_topic_that_is_only_looked_at_was_not_created(on_cluster, topic):
    result = on_cluster("topic", "create", f"{topic}.no", "--validate-only", "--json")
    assert json.loads(result.stdout) == {"valid": [f"{topic}.no"]}
    assert f"{topic}.no" not in lines(on_cluster("topic", "list"))


def test_lines_become_records_and_records_lines(on_cluster, topic):
    """PRO-17, CON-06."""
    text = "rakete1:Countdown beendet\nrakete2:Countdown: gestartet\nrakete1:Liftoff\n"
    on_cluster("produce", topic, "--key-separator", ":", text=text)
    assert sorted(read_all(on_cluster, topic, "--key")) == [
        "rakete1\tCountdown beendet",
        "rakete1\tLiftoff",
        "rakete2\tCountdown: gestartet",
    ]
    shown = [line for line in read_all(on_cluster, topic, "-f", "%k %s\\n") if "rakete1" in line]
    assert shown == ["rakete1 Countdown beendet", "rakete1 Liftoff"]


def test_the_summary_counts_what_was_shown(on_cluster, topic):
    """CON-05."""
    on_cluster("produce", topic, "eins", "zwei")
    result = on_cluster("consume", topic, "--from-beginning", "--until", "end")
    assert result.stderr == "Processed a total of 2 messages\n"
    assert on_cluster("consume", topic, "--until", "end", "-q").stderr == ""


def test_keys_go_where_the_java_client_sends_them(on_cluster, topic):
    """PRO-05, PRO-06."""
    on_cluster("produce", topic, "-K", ":", text="".join(f"{key}:x\n" for key in MURMUR2))
    went = dict(line.split() for line in read_all(on_cluster, topic, "-f", "%k %p\\n"))
    assert went == {key: str((number & 0x7FFFFFFF) % 3) for key, number in MURMUR2.items()}


def test_a_partition_may_be_given(on_cluster, topic):
    """PRO-08, CON-03."""
    result = on_cluster("produce", topic, "a", "b", "c", "--partition", "2", "--verbose")
    assert lines(result) == [f"{topic}-2 offset {offset}" for offset in range(3)]
    arguments = ("consume", topic, "--partition", "2", "--until", "end", "--from")
    assert lines(on_cluster(*arguments, "1")) == ["b", "c"]
    assert lines(on_cluster(*arguments, "-1")) == ["c"]
    assert lines(on_cluster(*arguments, "0", "--count", "1")) == ["a"]
    assert lines(on_cluster(*arguments[:4], "--from", "0", "--until", "2")) == ["a", "b"]
    assert "0 to 2" in on_cluster("produce", topic, "x", "-p", "3", code=1).stderr
    assert "0 to 2" in on_cluster("consume", topic, "-p", "3", code=1).stderr
    assert "out of range" in on_cluster(*arguments, "7", code=1).stderr


def test_a_time_is_a_place_to_start_at_and_to_end_at(on_cluster, topic):
    """CON-13."""
    on_cluster("produce", topic, "before", "-p", "0")
    (first,) = map(json.loads, read_all(on_cluster, topic, "--json"))
    later = first["timestamp"] + 1
    while True:
        on_cluster("produce", topic, "after", "-p", "0")
        newest = json.loads(read_all(on_cluster, topic, "--json")[-1])
        if newest["timestamp"] > first["timestamp"]:
            break
    from_then = lines(on_cluster("consume", topic, "-o", f"@{later}", "-u", "end"))
    assert set(from_then) == {"after"}
    until_then = lines(on_cluster("consume", topic, "-o", "beginning", "-u", f"@{later}"))
    assert until_then[0] == "before"
    assert len(until_then) + len(from_then) == newest["offset"] + 1


def test_json_brings_everything_back(on_cluster, topic):
    """MSG: null, empty, headers, times and what is no text survive a copy."""
    records = [
        {"key": "k", "value": {"speed": 1.5, "phase": "Liftoff"}, "headers": {"a": "1", "b": None}},
        {"key": None, "value": None},
        {"key": "", "value": "", "headers": [["x", "1"], ["x", "2"]]},
        {"key": "k", "value_base64": "/wA=", "timestamp": 1_234_567_890_123},
        {"value": "v", "headers_base64": [["id", "/wA="], ["n", None], ["t", "YQ=="]]},
        {"value": True, "headers": {"t": True, "o": {"x": 1}, "l": ["ü"], "n": 1.5}},
    ]
    text = "".join(json.dumps(record) + "\n" for record in records)
    on_cluster("produce", topic, "--from-json", "-p", "1", text=text)
    first = [json.loads(line) for line in read_all(on_cluster, topic, "--json")]
    assert [record["key"] for record in first] == ["k", None, "", "k", None, None]
    assert first[0]["value"] == '{"speed":1.5,"phase":"Liftoff"}'
    assert first[0]["headers"] == [["a", "1"], ["b", None]]
    assert first[1]["value"] is None
    assert first[2]["headers"] == [["x", "1"], ["x", "2"]]
    assert first[3]["value_base64"] == "/wA="
    assert first[3]["timestamp"] == 1_234_567_890_123
    assert first[4]["headers"] == [["id", "\ufffd\0"], ["n", None], ["t", "a"]]
    assert first[4]["headers_base64"] == records[4]["headers_base64"]
    assert "headers_base64" not in first[0]
    assert first[5]["value"] == "true"
    assert first[5]["headers"] == [["t", "true"], ["o", '{"x":1}'], ["l", '["ü"]'], ["n", "1.5"]]

    on_cluster("produce", topic, "--from-json", "-p", "2", text="\n".join(map(json.dumps, first)))
    again = [json.loads(line) for line in read_all(on_cluster, topic, "--json", "-p", "2")]
    same = ("key", "value", "headers", "timestamp", "value_base64", "headers_base64")
    assert [[r.get(name) for name in same] for r in again] == [
        [r.get(name) for name in same] for r in first
    ]


def test_an_empty_value_may_be_a_tombstone(on_cluster, topic):
    on_cluster("produce", topic, "", "--key", "alice", "-Z")
    on_cluster("produce", topic, "", "--key", "alice")
    assert read_all(on_cluster, topic, "-f", "%k %S\\n") == ["alice -1", "alice 0"]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_comes_back(on_cluster, topic, codec):
    values = [f"{number} " * 50 for number in range(20)]
    on_cluster("produce", topic, *values, "-z", codec, "-p", "0", "-H", "n=1")
    assert read_all(on_cluster, topic) == values


@pytest.mark.parametrize("acks", ["all", "1", "0"])
def test_acks(on_cluster, topic, acks):
    on_cluster("produce", topic, "x", "--acks", acks)
    result = on_cluster("consume", topic, "--from-beginning", "--count", "1")
    assert lines(result) == ["x"]


def test_a_file_is_sent_by_line_or_whole(on_cluster, topic, tmp_path):
    file = tmp_path / "lines"
    file.write_bytes(b"one\r\ntwo\n\nthree")
    on_cluster("produce", topic, "--file", str(file), "-p", "0")
    on_cluster("produce", topic, "--file", str(file), "-p", "1", "--whole")
    assert read_all(on_cluster, topic, "-p", "0") == ["one", "two", "", "three"]
    whole = on_cluster("consume", topic, "--from-beginning", "-u", "end", "-p", "1", "-f", "%S")
    assert whole.stdout == "15"


def test_a_line_without_its_key_is_named(on_cluster, topic):
    result = on_cluster("produce", topic, "-K", ":", text="a:1\nb\n", code=1)
    assert "No key separator found on line number 2: 'b'" in result.stderr
    for line, problem in (
        ("{", "line 1 is not JSON"),
        ('{"headers": 1}', "line 1: headers should be an object or a list of pairs"),
        ('{"headers_base64": [["a", "?"]]}', "line 1: headers_base64 is not base64"),
        ('{"timestamp": "noon"}', "line 1: timestamp is no number of milliseconds"),
        ('{"timestamp": 9223372036854775808}', "line 1: timestamp is no number of milliseconds"),
    ):
        assert problem in on_cluster("produce", topic, "--from-json", line, code=1).stderr


def test_options_that_do_not_go_together(on_cluster, topic):
    result = on_cluster("produce", topic, "x", "--acks", "1", "--idempotence", code=2)
    assert "--idempotence needs --acks all" in result.stderr
    assert "No such configuration property" in (
        on_cluster("produce", topic, "x", "-X", "no.such=1", code=2).stderr
    )


def test_a_topics_settings(on_cluster, topic):
    """TOP-18."""
    change = ("config", "set", "--topic", topic)
    changed = on_cluster(*change, "retention.ms=1000", "cleanup.policy=delete", "--json")
    assert json.loads(changed.stdout) == {
        "entity": "topic",
        "name": topic,
        "operation": "set",
        "settings": {"retention.ms": "1000", "cleanup.policy": "delete"},
    }
    on_cluster("config", "append", "--topic", topic, "cleanup.policy=compact")

    def settings():
        shown = json.loads(on_cluster("config", "describe", "--topic", topic, "--json").stdout)
        return {each["name"]: (each["value"], each["source"]) for each in shown}

    assert settings() == {
        "cleanup.policy": ("delete,compact", "topic"),
        "retention.ms": ("1000", "topic"),
    }
    on_cluster("config", "unset", "--topic", topic, "retention.ms", "cleanup.policy")
    assert settings() == {}
    everything = on_cluster("config", "describe", "--topic", topic, "--all")
    assert "retention.ms" in everything.stdout
    assert "Unknown topic config name: no.such" in on_cluster(*change, "no.such=1", code=1).stderr
    assert "KEY=VALUE" in on_cluster(*change, "retention.ms", code=2).stderr


def test_settings_of_every_broker(on_cluster):
    """The empty broker name, which librdkafka refuses."""
    on_cluster("config", "set", "--broker-default", "log.flush.interval.messages=123456")
    shown = json.loads(on_cluster("config", "describe", "--broker-default", "--json").stdout)
    assert {each["name"]: each["value"] for each in shown}["log.flush.interval.messages"] == (
        "123456"
    )
    on_cluster("config", "unset", "--broker-default", "log.flush.interval.messages")
    shown = on_cluster("config", "describe", "--broker-default").stdout
    assert "log.flush.interval.messages" not in shown


def test_whose_settings_must_be_said(on_cluster):
    assert "--broker-default" in on_cluster("config", "describe", code=2).stderr
    both = ("config", "describe", "--topic", "t", "--broker", "1")
    assert "one of" in on_cluster(*both, code=2).stderr


def test_measurements(on_cluster, topic):
    """MON-07."""
    sent = on_cluster("perf", "produce", topic, "-n", "500", "-s", "100").stdout
    assert sent.startswith("500 records sent, ")
    assert " ms 99.9th." in sent
    read = json.loads(on_cluster("perf", "consume", topic, "--json").stdout)
    assert (read["records"], read["bytes"]) == (500, 50_000)
    probed = on_cluster("perf", "latency", topic, "-n", "20", "--warm-up", "5", "--json")
    assert json.loads(probed.stdout)["records"] == 20
    paced = on_cluster("perf", "latency", topic, "-n", "20", "--warm-up", "0", "--rate", "200")
    assert paced.stdout.startswith("20 records there and back, ")


def test_a_probe_that_is_refused_is_told_at_once(on_cluster, topic):
    on_cluster("config", "set", "--topic", topic, "cleanup.policy=compact")
    result = on_cluster("perf", "latency", topic, "-n", "5", code=1)
    assert "could not be sent: Broker: Broker failed to validate record" in result.stderr


def test_probes_are_told_from_what_others_write(on_cluster, topic, process):
    other = process("perf", "produce", topic, "-n", "100000000", "--rate", "500")
    on_cluster("produce", topic, "short")
    on_cluster("consume", topic, "--from-beginning", "--count", "10")
    probed = on_cluster("perf", "latency", topic, "-n", "20", "--warm-up", "5", "--json")
    other.terminate()
    other.communicate(timeout=30)
    told = json.loads(probed.stdout)
    assert told["records"] == 20
    minute_ms = 60_000
    assert 0 < told["average_ms"] <= told["max_ms"] < minute_ms


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_measurement_with_what_it_has(on_cluster, topic, process, number):
    sender = process("perf", "produce", topic, "-n", "100000000", "--rate", "200", "--json")
    on_cluster("consume", topic, "--from-beginning", "--count", "1")
    sender.send_signal(number)
    out, err = sender.communicate(timeout=30)
    assert json.loads(out)["records"] > 0
    assert err == ""
    assert sender.returncode == 128 + number


def test_there_is_nothing_to_measure_in_an_empty_topic(on_cluster, topic):
    assert "is empty" in on_cluster("perf", "consume", topic, code=1).stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_reader_with_its_summary(on_cluster, topic, process, number):
    """CON-05."""
    on_cluster("produce", topic, "Countdown gestartet")
    reader = process("consume", topic, "--from-beginning")
    assert reader.stdout.readline() == "Countdown gestartet\n"
    reader.send_signal(number)
    out, err = reader.communicate(timeout=30)
    assert (out, err) == ("", "Processed a total of 1 messages\n")
    assert reader.returncode == 128 + number


def test_a_reader_starts_at_the_end(on_cluster, topic, process):
    """CON-05: what was there before is not shown, what comes is."""
    on_cluster("produce", topic, "before", "-p", "0")
    reader = process("consume", topic, "--format", "%s\\n", "--count", "1")
    # Whenever the reader is ready, the next of these is the first that it shows.
    shown = None
    for attempt in range(1000):
        on_cluster("produce", topic, f"after {attempt}", "-p", "0")
        if reader.poll() is not None:
            shown = reader.stdout.read()
            break
    assert shown is not None
    assert shown.startswith("after ")


def test_the_demo_plays_to_its_end(on_cluster, bootstrap, topic):
    """USE-02."""
    name = f"{topic}-demo"
    result = on_cluster("demo", "-b", bootstrap, "--topic", name, "--seconds", "1")
    assert "read again: byte for byte what was sent" in result.stdout
    assert "received  rakete5  Landed" in result.stdout
    assert name not in lines(on_cluster("topic", "list"))
