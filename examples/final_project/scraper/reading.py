"""From an answer to what is done about it: facts to write, nothing, or another attempt.

Bad input never ends the scraper. A page that cannot be read is a dead letter, a row that cannot be
read is one while the others are facts; the letter says why, and holds what was read. A letter is a
fact too, so the same bad page makes one letter, not one for each fetch.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Any

from examples.final_project.scraper import exposition, items, polite, tables
from examples.final_project.scraper.facts import Fact, Value, encoded
from examples.final_project.scraper.jobs import Items, Job, Metrics, Table

DEAD_LETTERS = "dead-letters"
LETTER_BYTES_MAX = 65_536
SCHEMA_VERSION = 1
VALUE_BYTES_MAX = 65_536
REDIRECTS = (301, 302, 303, 307, 308)
#: Brokers take record times up to an hour ahead of theirs, and clocks differ.
FUTURE_MS_MAX = 1_800_000


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server said; `cut` if it said more than we are ready to read."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there was no answer."""

    reason: str


@dataclass(frozen=True, slots=True)
class Facts:
    """What the page says, and what to ask with next time once that is written."""

    facts: list[Fact]
    validators: polite.Validators
    #: Where the page goes on, if it does.
    following: str | None = None


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The page is the one we know."""


@dataclass(frozen=True, slots=True)
class Moved:
    """The page is elsewhere, as the server says it."""

    location: str


@dataclass(frozen=True, slots=True)
class Again:
    """Try again after a while; `host_waits` if the server asked everybody to."""

    wait_ms: int
    reason: str
    host_waits: bool = False


@dataclass(frozen=True, slots=True)
class GaveUp:
    """Enough attempts; the next one is by the schedule."""

    reason: str


Outcome = Facts | Unchanged | Moved | Again | GaveUp


def outcome(
    job: Job, answer: Answer | Failure, attempt: int, now_ms: int, chance: Random
) -> Outcome:
    """Return what an attempt came to; attempts count from 1."""
    if isinstance(answer, Failure):
        return _again(answer.reason, attempt, polite.back_off_ms(attempt, chance))
    if answer.status == 304:
        return Unchanged()
    if answer.status in REDIRECTS and (location := answer.headers.get("location")):
        return Moved(location)
    if answer.status == 429 or answer.status >= 500:
        reason = f"status {answer.status}"
        asked_ms = polite.retry_after_ms(answer.headers.get("retry-after"), now_ms)
        if asked_ms is None:
            return _again(reason, attempt, polite.back_off_ms(attempt, chance))
        return _again(reason, attempt, asked_ms, host_waits=True)
    return _page(job, answer, now_ms)


def _again(reason: str, attempt: int, wait_ms: int, *, host_waits: bool = False) -> Again | GaveUp:
    if attempt >= polite.ATTEMPTS_MAX:
        return GaveUp(reason)
    return Again(wait_ms, reason, host_waits)


def _page(job: Job, answer: Answer, now_ms: int) -> Facts:
    """Return what a page says.

    One that cannot be read is a letter, and is asked for anew: what was half a page may have the
    validators of the whole one.
    """
    try:
        found, following = _read(job, answer, now_ms)
        # Unchanged is one page alone: of those behind it nothing would be known.
        pages = isinstance(job.reads, Items) and job.reads.following is not None
        validators = polite.Validators() if pages else polite.Validators.of(answer.headers)
        return Facts(list(found), validators, following)
    except tables.UnreadableError as error:
        reason = str(error)
    except Exception as error:  # noqa: BLE001 - whatever a page does to us, we go on
        reason = f"unexpected: {error!r}"
    return Facts([_letter(job, reason, answer.body, now_ms)], polite.Validators())


def _read(job: Job, answer: Answer, now_ms: int) -> tuple[Iterator[Fact], str | None]:
    """Return what a page says, and where it goes on."""
    text = _text(answer)
    match job.reads:
        case Table() as table:
            return _facts(job, table, tables.rows(text, table.table, table.columns), now_ms), None
        case Items() as wanted:
            objects, following = items.read(text, wanted)
            return _facts(job, wanted, objects, now_ms), following
        case Metrics(prefixes):
            return _series(job, exposition.values(text, prefixes), now_ms), None


def _text(answer: Answer) -> str:
    if answer.status != 200:
        raise tables.UnreadableError(f"status: {answer.status}")
    if answer.cut:
        raise tables.UnreadableError(f"size: more than {len(answer.body)} bytes")
    try:
        return answer.body.decode()
    except UnicodeDecodeError as error:
        raise tables.UnreadableError(f"encoding: {error}") from error


def _series(job: Job, found: Iterable[tuple[str, Value]], now_ms: int) -> Iterator[Fact]:
    for series, value in found:
        name = f"{job.name}/{series}"
        yield _fact(job, job.name, name, encoded({"broker": job.name, **value}), now_ms)


def _facts(job: Job, reads: Table | Items, rows: Iterable[Any], now_ms: int) -> Iterator[Fact]:
    for row in rows:
        try:
            value = reads.value(row)
            body = encoded(value)
            at_ms = now_ms if reads.at is None else _ms(str(value[reads.at]))
        except ValueError as error:
            yield _letter(job, str(error), _shown(row), now_ms)
            continue
        if reason := _refused(body, at_ms, now_ms):
            yield _letter(job, reason, _shown(row), now_ms)
            continue
        name = "/".join(str(value[part]) for part in reads.identity)
        yield _fact(job, str(value[reads.key]), name, body, at_ms)


def _shown(row: Any) -> bytes:  # noqa: ANN401 - whatever is in an answer
    """Return a row for a letter; half a character stays written as JSON has it."""
    try:
        return encoded(row)
    except UnicodeEncodeError:
        return json.dumps(row, sort_keys=True).encode()


def _refused(value: bytes, at_ms: int, now_ms: int) -> str | None:
    """Return why a broker would refuse the record, and all others of the page with it."""
    if len(value) > VALUE_BYTES_MAX:
        return f"size: a row of {len(value)} bytes"
    if not 0 <= at_ms <= now_ms + FUTURE_MS_MAX:
        return "type: a time that is not yet, or long before rockets"
    return None


def _fact(job: Job, key: str, name: str, value: bytes, at_ms: int) -> Fact:
    headers = {"source": job.url, "schema": f"{job.topic}/{SCHEMA_VERSION}"}
    return Fact(job.topic, key, name, at_ms, value, headers)


def _letter(job: Job, reason: str, body: bytes, now_ms: int) -> Fact:
    """Return the dead letter for what was read; its name is the whole of it, its value a part."""
    name = f"{job.name}/{reason}/{hashlib.blake2b(body, digest_size=16).hexdigest()}"
    headers = {"source": job.url, "topic": job.topic, "reason": reason, "bytes": str(len(body))}
    return Fact(DEAD_LETTERS, job.name, name, now_ms, body[:LETTER_BYTES_MAX], headers)


def _ms(text: str) -> int:
    # Not by way of another zone: at both ends of the calendar there may be no such time.
    return int(datetime.fromisoformat(text).timestamp() * 1000)
