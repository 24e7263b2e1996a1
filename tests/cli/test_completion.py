import pytest

from strom.cli import completion


@pytest.fixture
def completed(strom, monkeypatch):
    """Return what the shell would offer at the end of a line."""

    def ask(line):
        monkeypatch.setenv("_STROM_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
        offered = strom().stdout.split()
        monkeypatch.delenv("_STROM_COMPLETE")
        return offered

    return ask


def test_commands_and_options_are_offered(completed):
    assert completed("strom topic de") == ["describe", "delete"]
    assert completed("strom up --p") == ["--port"]


def test_nothing_is_offered_when_nobody_is_there(completed, monkeypatch):
    monkeypatch.setenv("STROM_BOOTSTRAP", "127.0.0.1:1")
    assert completed("strom consume ") == []


@pytest.mark.slow
def test_topics_are_offered(completed, topic, monkeypatch):
    # A shell does not wait for a broker that is held up; a test does.
    monkeypatch.setattr(completion, "ANSWER_SECONDS_MAX", 60)
    assert completed(f"strom consume {topic[:-2]}") == [topic]
