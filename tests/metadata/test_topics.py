"""Names of topics (TOP-17): Kafka's rules in Kafka's words."""

import pytest

from strom.metadata.topics import check_topic_name, find_collision, is_internal
from strom.wire.errors import ErrorCode, KafkaError

LONG = "x" * 250


@pytest.mark.parametrize(
    "name", ["t", "x" * 249, "a.b_c-D9", "__mine", "...", "__cluster_metadata"]
)
def test_a_legal_name_is_taken(name):
    check_topic_name(name)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        (LONG, f"the length of '{LONG}' is longer than the max allowed length 249"),
        *(
            (
                name,
                f"'{name}' contains one or more characters other than "
                "ASCII alphanumerics, '.', '_' and '-'",
            )
            for name in ("a b", "ä", "a/b", "a\n", "\u0661")
        ),
    ],
)
def test_an_illegal_name_is_refused_with_the_reason(name, reason):
    with pytest.raises(KafkaError) as refused:
        check_topic_name(name)
    assert refused.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert refused.value.message == f"Topic name is invalid: {reason}"


def test_names_that_differ_in_dots_and_underscores_only_collide():
    assert find_collision("a.b", ["x", "a_b"]) == "a_b"
    assert find_collision("a_b", ["a.b"]) == "a.b"
    assert find_collision("a.b", ["a.b", "a-b", "ab"]) is None
    assert find_collision("ab", ["a.b"]) is None


def test_two_underscores_alone_make_no_internal_topic():
    assert is_internal("__consumer_offsets")
    assert not is_internal("__mine")
