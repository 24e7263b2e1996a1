"""Spark's errors in the words of a pipeline: which step it was, and what to do.

Spark tells of a failed query with a stack of causes, Java's and Python's. What a user can act upon
is the innermost: the last line of the Python traceback, or the first line of Java's; of an error
that came straight from Java, the last of its causes.
"""

import re
from collections.abc import Iterable

from strom.pipelines.declaration import Node, Step

#: The last line of a Python traceback that came through the JVM.
PYTHON_ERROR = re.compile(
    r"^(?:\w+\.)*(?P<kind>\w*(?:Error|Exception|Warning|Interrupt)): (?P<text>.+)$", re.MULTILINE
)
#: What the bridge to Java puts before an error.
CALLING = re.compile(r"^An error occurred while calling \S+\s*:? ")
CAUSE = re.compile(r"^Caused by: (?P<text>.+)$", re.MULTILINE)
JAVA_CLASS = re.compile(r"^(?:[a-z][\w$]*\.)+[A-Z][\w$]*: ")
#: Where Spark says from which line of Python a failing expression comes.
CALLED_FROM = re.compile(r"was called from\s+(?P<file>\S+?):(?P<line>\d+)")
RAISED = re.compile(r"\[USER_RAISED_EXCEPTION\] (?P<text>.+?)(?: SQLSTATE: \w+)?$", re.MULTILINE)
TEXT_LENGTH_MAX = 600

ROOM = "make room where the checkpoints are; the run goes on from there"
WHERE_BROKERS = "is it running, and is this its address? -b, STROM_BOOTSTRAP or bootstrap=… say it"

#: What to do about some of Spark's conditions.
ADVICE = {
    "NO_DATA_SOURCE": "is strom[spark] installed for this Python?",
    "STATE_STORE_": "the state does not fit the query any more: strom pipeline run … --reset SINK",
    "STREAMING_STATEFUL_OPERATOR": "the state does not fit: strom pipeline run … --reset SINK",
    "UnreachableError": WHERE_BROKERS,
    "No space left on device": ROOM,
}


def explain(text: str) -> str:
    """Return the part of an error's text that says what happened, with advice if there is any."""
    told = _innermost(text).strip()
    advice = [what for sign, what in ADVICE.items() if sign in text]
    told = told if len(told) <= TEXT_LENGTH_MAX else told[: TEXT_LENGTH_MAX - 1] + "…"
    return f"{told} ({advice[0]})" if advice else told


def _innermost(text: str) -> str:
    raised = RAISED.search(text)
    if raised:
        return raised["text"]
    found = list(PYTHON_ERROR.finditer(text))
    if "Traceback (most recent call last)" in text and found:
        return f"{found[-1]['text']}"
    told, calls = CALLING.subn("", text.strip())
    causes = CAUSE.findall(told) if calls else []
    return JAVA_CLASS.sub("", (causes or [told.partition("\n")[0]])[-1])


def step_of(text: str, nodes: Iterable[Node]) -> str | None:
    """Return the step whose code an error points at, if it points at any."""
    for found in CALLED_FROM.finditer(text):
        for node in nodes:
            if isinstance(node, Step) and _covers(node, found["file"], int(found["line"])):
                return node.name
    return None


def _covers(step: Step, file: str, line: int) -> bool:
    code = getattr(step.transform, "__code__", None)
    if code is None or not code.co_filename.endswith(file.rpartition("/")[2]):
        return False
    lines = [number for _, _, number in code.co_lines() if number is not None]
    return bool(lines) and min(lines) <= line <= max(lines)
