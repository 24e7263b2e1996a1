"""The text of settings files, read as Java reads it (BRK-03, CON-15)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strom.metadata.settings import SettingsError, read_overrides, read_properties


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("# a comment\n! another\n\n  # indented\n", {}),
        ("broker.id=1\nlog.dirs = /data/1 ", {"broker.id": "1", "log.dirs": "/data/1 "}),
        ("fetch.min.bytes: 1000000", {"fetch.min.bytes": "1000000"}),
        ("fetch.min.bytes 1000000", {"fetch.min.bytes": "1000000"}),
        ("listeners=PLAINTEXT://:9092", {"listeners": "PLAINTEXT://:9092"}),
        ("a = = b", {"a": "= b"}),
        ("empty", {"empty": ""}),
        ("empty=", {"empty": ""}),
        ("a=1\na=2", {"a": "2"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("log.dirs=/a,\\\n   /b", {"log.dirs": "/a,/b"}),
        ("a=1\\\n# not a comment", {"a": "1# not a comment"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=x\\ty\\n\\r\\f", {"a": "x\ty\n\r\f"}),
        ("a=\\u00e9\\u4f60!", {"a": "é你!"}),
        ("a\\ b\\:c\\=d=e", {"a b:c=d": "e"}),
        ("path=C:\\data", {"path": "C:data"}),
        ("a=cut\\", {"a": "cut"}),
        ("\\\n# a comment after nothing", {}),
    ],
)
def test_a_file_is_read_as_java_reads_it(text, expected):
    assert read_properties(text) == expected


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\uxyz1", "a=\\u"])
def test_a_broken_character_is_refused_with_what_to_write(text):
    with pytest.raises(SettingsError, match="four hexadecimal digits"):
        read_properties(text)


@given(st.dictionaries(st.text("ab .:=#!\\\tü", min_size=1), st.text("ab :=#!\\\tü")))
def test_what_java_would_write_is_read_back(properties):
    def written(text):
        text = text.replace("\\", "\\\\").replace("\t", "\\t")
        for special in " :=#!":
            text = text.replace(special, "\\" + special)
        return text

    text = "\n".join(f"{written(key)}={written(value)}" for key, value in properties.items())
    assert read_properties(text) == properties


def test_overrides_are_key_and_value():
    texts = ["num.partitions=3", " log.dirs = /a=b "]
    assert read_overrides(texts) == {"num.partitions": "3", "log.dirs": "/a=b"}


@pytest.mark.parametrize("text", ["num.partitions", "=3", " =3"])
def test_an_override_without_a_value_is_refused(text):
    with pytest.raises(SettingsError, match="write it as key=value"):
        read_overrides([text])
