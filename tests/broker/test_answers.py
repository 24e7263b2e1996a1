"""What handlers share: how much one request may be about, and which answers a thread builds."""

import pytest

from strom.broker.answers import ASKED_MAX, BUILT_AT_ONCE, answer_of, each_once, require_few
from strom.wire.primitives import MalformedFrame


def test_an_answer_about_many_is_built_later():
    assert answer_of(BUILT_AT_ONCE, lambda: "now") == "now"
    assert answer_of(BUILT_AT_ONCE + 1, lambda: "later").build() == "later"
    assert answer_of(3, lambda: "later", at_once=2).build() == "later"


def test_a_thing_that_is_named_again_is_not_looked_up_again():
    seen = []

    def describe(thing):
        seen.append(thing)
        return thing.upper()

    assert each_once(["a", "b", "a", "a"], describe) == ("A", "B", "A", "A")
    assert seen == ["a", "b"]


def test_a_request_about_too_much_is_none():
    require_few(ASKED_MAX)
    with pytest.raises(MalformedFrame, match=f"{ASKED_MAX + 1} things"):
        require_few(ASKED_MAX + 1)
