"""The log of a broker's process (MON-12): a line an event, whatever clients call things."""

import logging

import pytest

from strom.broker.process import MESSAGE_CHARS_MAX, OneLine


def line_of(message, *arguments, **more):
    made = logging.LogRecord("strom.test", logging.WARNING, "", 0, message, arguments, **more)
    return OneLine().format(made)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("flugdaten", "flugdaten"),
        ("Grüße, 世界", "Grüße, 世界"),
        ("x\n[2026-11-17 00:00:00,000] ERROR all is lost", r"x\n[2026-11-17 00:00:00,000] ERROR"),
        ("x\r\x1b[2J\x00\x7f", r"x\r\x1b[2J\x00\x7f"),
        ("\u2028\udcff", r"\u2028\udcff"),
    ],
)
def test_what_clients_name_so_writes_no_lines_of_its_own(name, shown):
    line = line_of("refused %s", name, exc_info=None)
    assert f"refused {shown}" in line
    assert line.isprintable()
    assert line.endswith(" (strom.test)")


def test_a_line_ends_somewhere():
    line = line_of("refused %s", "x" * 10 * MESSAGE_CHARS_MAX, exc_info=None)
    assert MESSAGE_CHARS_MAX < len(line) < MESSAGE_CHARS_MAX + 100
    assert line.endswith("x… (strom.test)")


def test_a_bug_is_told_with_where_it_happened():
    try:
        int("no\nnumber")
    except ValueError as error:
        found = (ValueError, error, error.__traceback__)
    first, second, *_ = line_of("A bug", exc_info=found).splitlines()
    assert first.endswith("A bug (strom.test)")
    assert second.startswith("Traceback")
