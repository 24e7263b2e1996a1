"""Spark's errors in the words of a pipeline: which step it was, and what to do.

Spark tells of a failed query with a stack of causes, Java's and Python's. What a user can act upon
is the innermost: the last line of the Python traceback, or the first line of Java's; of an error
that came straight from Java, the last of its causes.
"""

import re
import string
from collections.abc import Iterable, Iterator
from itertools import pairwise
from types import CodeType

from strom.pipelines.declaration import Node, Step

#: The last line of a Python traceback that came through the JVM.
PYTHON_ERROR = re.compile(
    r"^(?P<module>(?:\w+\.)*)(?P<kind>\w*(?:Error|Exception|Warning|Interrupt))"
    r"(?:: (?P<text>.+))?$",
    re.MULTILINE,
)
#: What the bridge to Java puts before an error.
CALLING = re.compile(r"^An error occurred while calling \S+\s*:? ")
CAUSE = re.compile(r"^Caused by: (?P<text>.+)$", re.MULTILINE)
JAVA_CLASS = re.compile(r"^(?:[a-z][\w$]*\.)+[A-Z][\w$]*: ")
#: Where Spark says from which line of Python a failing expression comes.
CALLED_FROM = re.compile(r"was called from\s+(?P<file>\S+?):(?P<line>\d+)")
#: A line of a Python traceback: Spark's own, or of a function that a step has given to Spark.
FRAME = re.compile(
    r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<name>\S+)', re.MULTILINE
)
#: What Spark quotes of a query: lines, and below each what of it is meant.
QUOTE = re.compile(r"^== SQL.*==\n(?P<lines>(?:.+\n)+)", re.MULTILINE)
UNDERLINE = re.compile(r"\s*\^+\s*")
#: Where Spark leaves out what stands further away in the line; a word may be cut in two there.
CUT = re.compile(r"^\.\.\.\S*|\S*\.\.\.$")
#: What Spark calls an input of a query.
INPUT = re.compile(r"_pyspark_[0-9a-f]+")
INPUT_SIGN = "\0"
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
        return _last_line(found[-1])
    told, calls = CALLING.subn("", text.strip())
    causes = CAUSE.findall(told) if calls else []
    return JAVA_CLASS.sub("", (causes or [told.partition("\n")[0]])[-1])


def _last_line(found: re.Match[str]) -> str:
    """Return what a traceback ends with; Python's own errors say little without their kind."""
    if found["text"] is None:
        return found["kind"]
    return found["text"] if found["module"] else f"{found['kind']}: {found['text']}"


def step_of(text: str, nodes: Iterable[Node]) -> str | None:
    """Return the step whose code an error points at, if it points at any."""
    steps = [node for node in nodes if isinstance(node, Step)]
    found = [*_called_from(text, steps), *_quoted(text, steps), *_raised_in(text, steps)]
    return found[0].name if found else None


def _called_from(text: str, steps: list[Step]) -> Iterator[Step]:
    """Yield the steps in which expressions were made that fail."""
    for found in CALLED_FROM.finditer(text):
        name = found["file"].rpartition("/")[2]
        for step, code in _functions(steps):
            if code.co_filename.endswith(name) and _covers(code, int(found["line"])):
                yield step


def _quoted(text: str, steps: list[Step]) -> Iterator[Step]:
    """Yield the steps whose queries Spark quotes a part of."""
    for quote in QUOTE.finditer(text):
        for shown, below in pairwise(quote["lines"].splitlines()):
            if UNDERLINE.fullmatch(below):
                yield from (step for step in steps if _has(step, shown.strip()))


def _has(step: Step, shown: str) -> bool:
    """Whether a line that Spark shows is of a step's query."""
    if not isinstance(step.transform, str):
        return False
    part = INPUT.sub(INPUT_SIGN, CUT.sub("", CUT.sub("", shown))).strip()
    return bool(part) and part in _query(step.transform)


def _query(template: str) -> str:
    """Return a step's query as Spark sees it, but for the names of the inputs."""
    pieces = string.Formatter().parse(template)
    return "".join(f"{text}{INPUT_SIGN if name is not None else ''}" for text, name, _, _ in pieces)


def _raised_in(text: str, steps: list[Step]) -> Iterator[Step]:
    """Yield the steps that a traceback leads to, from where it ends on.

    They have its line in them; else it is the one step that names the function of the line.
    """
    naming: list[str] = []
    for frame in reversed(list(FRAME.finditer(text))):
        there = [each for each in _functions(steps) if each[1].co_filename == frame["file"]]
        yield from (step for step, code in there if _covers(code, int(frame["line"])))
        naming += [step.name for step, code in there if frame["name"] in _names(code)]
    yield from (step for step in steps if {step.name} == set(naming))


def _functions(steps: list[Step]) -> Iterator[tuple[Step, CodeType]]:
    for step in steps:
        code = getattr(step.transform, "__code__", None)
        if code is not None:
            yield step, code


def _covers(code: CodeType, line: int) -> bool:
    lines = [
        number
        for each in (code, *_inner(code))
        for _, _, number in each.co_lines()
        if number is not None
    ]
    return bool(lines) and min(lines) <= line <= max(lines)


def _names(code: CodeType) -> set[str]:
    """Return the names of what a function uses from outside."""
    return {name for each in (code, *_inner(code)) for name in (*each.co_names, *each.co_freevars)}


def _inner(code: CodeType) -> Iterator[CodeType]:
    """Yield the functions inside a function."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _inner(each)
