"""The table of the settings, and what its definitions make of values (§3.1, TOP-18, RET-01…05).

tests/conformance/test_settings.py compares the table with Apache Kafka.
"""

import pkgutil
import re
from pathlib import Path

import pytest

from strom.log.config import LogConfig
from strom.metadata.settings import BrokerSettings, table
from strom.metadata.settings.catalogue import BROKER, CLIENT_METRICS, GROUP, TOPIC, UNITS
from strom.metadata.settings.checks import check_of
from strom.metadata.settings.definition import (
    CLASS,
    CLUSTER_WIDE,
    DOUBLE,
    INT,
    LIST,
    PASSWORD,
    PER_BROKER,
    READ_ONLY,
    RUN_TIME,
    STRING,
    parse,
)

HERE = Path(__file__).parent
KINDS = {"broker": BROKER, "topic": TOPIC, "group": GROUP, "client-metrics": CLIENT_METRICS}


def rows(name, columns):
    lines = (HERE / name).read_text().splitlines()
    return [line.split("|", columns - 1) for line in lines if not line.startswith("#")]


def test_every_line_of_the_table_is_a_setting_and_every_reason_has_one():
    text = pkgutil.get_data(table.PACKAGE, table.FILE).decode()
    _, reasons, *sections = re.split(r"^\[.*\]$", text, flags=re.MULTILINE)
    lines = [cells(line) for section in sections for line in section.splitlines() if line]
    assert len(lines) == sum(map(len, KINDS.values()))
    named = [cells(line)[0] for line in reasons.splitlines() if line]
    assert sorted(named) == sorted({line[7] for line in lines} - {""})


def cells(line):
    return [cell.strip() for cell in line.split("|")]


def test_the_words_of_the_table_are_known():
    for definitions in KINDS.values():
        for setting in definitions.values():
            assert setting.importance in ("high", "medium", "low"), setting.name
            assert setting.mode in (READ_ONLY, PER_BROKER, CLUSTER_WIDE), setting.name
            assert setting.hidden in ("", "internal", RUN_TIME), setting.name
            assert not setting.stand_in or setting.stand_in in BROKER, setting.name


@pytest.mark.parametrize(
    ("column", "cell"), [(1, "INTEGER"), (2, "one"), (3, "positive"), (3, "[a,...]"), (7, "why")]
)
def test_a_line_that_cannot_be_read_is_named(column, cell):
    line = cells("a | INT | 1 | [0,...] | low | read-only | | | What it is for.")
    assert table.read_setting(line, "broker: all", {"": ""}).name == "a"
    line[column] = cell
    with pytest.raises((KeyError, ValueError)) as failed:
        table.read_setting(line, "broker: all", {"": ""})
    assert failed.value.__notes__ == [f"in settings.txt: {' | '.join(line)}"]


@pytest.mark.parametrize(
    ("kind", "valid", "good", "bad"),
    [
        (INT, "[1,...,3]", "3", "4"),
        (DOUBLE, "[0,...,0.5]", "0.5", "0.6"),
        (STRING, "[a, b]", "b", "B"),
        (STRING, "(case insensitive) [A, B]", "b", "c"),
        (STRING, "(not empty)", "a", ""),
        (LIST, "", "", "a,,b"),
        (LIST, "[a, b]", "", "c"),
        (LIST, "(not empty)", "c", ""),
        (LIST, "(not empty) [a, b]", "a", ""),
        (INT, "gzip-level", "-1", "0"),
    ],
)
def test_valid_values_are_a_notation_or_a_name(kind, valid, good, bad):
    check = check_of(kind, valid)
    assert check.problem("n", parse("n", kind, good)) is None
    assert check.problem("n", parse("n", kind, bad))


def test_every_default_is_valid():
    for definitions in KINDS.values():
        for setting in definitions.values():
            if setting.default not in (None, ()):
                assert setting.read(setting.show(setting.default)) == setting.default, setting.name


def test_values_are_read_and_refused_as_kafka_does():
    for kind, name, given, answer in rows("kafka_4_3_answers.txt", 4):
        setting = KINDS[kind][name]
        try:
            mine = f"OK {setting.show(setting.read(given))}"
        except ValueError as problem:
            mine = str(problem)
        assert mine == answer, (name, given)


def test_every_setting_says_in_a_sentence_what_it_is_for():
    for definitions in KINDS.values():
        for setting in definitions.values():
            assert setting.doc.endswith("."), setting.name
            assert setting.doc[0].isupper(), setting.name


def test_only_secrets_are_sensitive():
    assert {name for name, each in BROKER.items() if each.sensitive} == {
        name for name, each in BROKER.items() if each.type == PASSWORD
    }
    assert "ssl.keystore.password" in {name for name, each in BROKER.items() if each.sensitive}


def test_stand_ins_have_the_type_and_default_of_what_they_stand_in_for():
    settings = BrokerSettings()
    for name, each in TOPIC.items():
        assert not each.stand_in or BROKER[each.stand_in].type == each.type
        assert settings.of_topic(name) == each.default
    for each in GROUP.values():
        assert not each.stand_in or BROKER[each.stand_in].default == each.default
    for names in UNITS.values():
        assert all(name in BROKER for name, _ in names)


def test_the_logs_own_defaults_are_those_of_the_settings():
    assert BrokerSettings().log_config() == LogConfig()


def test_a_class_name_is_taken_although_java_classes_cannot_be_loaded():
    policy = BROKER["alter.config.policy.class.name"]
    assert policy.type == CLASS
    assert policy.read("com.example.Policy") == "com.example.Policy"
    assert policy.accepted


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("Infinity", "Infinity"),
        ("-Infinity", "-Infinity"),
        ("123456789", "1.23456789E8"),
        ("0.0001", "1.0E-4"),
        ("-0.5", "-0.5"),
    ],
)
def test_fractions_are_shown_as_java_shows_them(given, shown):
    rate = BROKER["log.cleaner.io.max.bytes.per.second"]
    assert rate.show(rate.read(given)) == shown


@pytest.mark.parametrize("given", ["-+5", "1_000", "0x10", "٣x"])
def test_only_plain_digits_are_a_number(given):
    with pytest.raises(ValueError, match="Not a number of type INT"):
        BROKER["num.partitions"].read(given)


@pytest.mark.parametrize("given", ["inf", "nan", "1_0.0"])
def test_only_what_java_reads_is_a_fraction(given):
    with pytest.raises(ValueError, match="Not a number of type DOUBLE"):
        BROKER["log.cleaner.io.max.bytes.per.second"].read(given)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("retention.ms", "1\u00a0"),
        ("preallocate", "true\u2003"),
        ("cleanup.policy", "delete,\u00a0compact"),
        ("cleanup.policy", "delete\x00,compact"),
        ("min.cleanable.dirty.ratio", "0.5\u00a0"),
        ("min.cleanable.dirty.ratio", "ff"),
        ("leader.replication.throttled.replicas", "\u0660:1"),
    ],
)
def test_what_is_no_blank_or_digit_in_java_is_none_here(name, given):
    """A space that does not break comes with what is copied from a page, and is not seen."""
    with pytest.raises(ValueError, match=name):
        TOPIC[name].read(given)


def test_blanks_and_literals_of_java_are_read():
    assert TOPIC["retention.ms"].read("\x1f1\x00") == 1
    assert TOPIC["cleanup.policy"].read("\tdelete ,\n compact\x00") == ("delete", "compact")
    for given in ("0.5f", "5e-1D", "\n0.5\r"):
        assert TOPIC["min.cleanable.dirty.ratio"].read(given) == 0.5
    assert TOPIC["leader.replication.throttled.replicas"].read("0:1,") == ("0:1", "")


@pytest.mark.parametrize("span", ["P1D", "pt1h", "PT1.5S", "P1DT1M", "+PT0S"])
def test_a_share_group_begins_a_time_span_ago(span):
    setting = GROUP["share.auto.offset.reset"]
    assert setting.read(f"by_duration:{span}") == f"by_duration:{span}"


@pytest.mark.parametrize("span", ["", "P", "PT", "Px", "P1DT", "P1W", "PT1M1H", "-PT1H", "P-1D"])
def test_what_is_no_time_span_is_refused(span):
    with pytest.raises(ValueError, match=r"of the format 'by_duration:<PnDTnHnMn\.nS>'"):
        GROUP["share.auto.offset.reset"].read(f"by_duration:{span}")
