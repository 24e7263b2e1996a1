"""How far a run is: what Spark says of each micro-batch, as the few numbers that people ask for.

rows      read since this run began          lag       records that were there and not yet read
rate      rows a second, of the last batch   latency   how long the last micro-batch took
state     rows and bytes that are remembered
bad       records that could not be read and did not end the run
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

#: The beginning of the name under which Spark counts a source's records that cannot be read.
BAD_RECORDS_OF = "bad records of "


@dataclass(frozen=True, slots=True)
class SinkProgress:
    """How far one sink is; None where nobody knows yet."""

    sink: str
    group: str
    rows: int = 0
    rows_per_second: float = 0.0
    lag: int | None = None
    latency_ms: int | None = None
    state_rows: int = 0
    state_bytes: int = 0
    late_rows: int = 0
    watermark: str | None = None
    batch: int = -1
    bad_rows: int = 0

    @property
    def done(self) -> float | None:
        """Return which part of what was there is read, from 0 to 1."""
        if self.lag is None:
            return None
        total = self.rows + self.lag
        return 1.0 if total == 0 else self.rows / total

    def after(self, batch: Mapping[str, Any]) -> "SinkProgress":
        """Return the progress after one more micro-batch, as Spark reports it."""
        operators = batch.get("stateOperators") or []
        lags = [_lag(source) for source in batch.get("sources") or []]
        known = [lag for lag in lags if lag is not None]
        return replace(
            self,
            rows=self.rows + (batch.get("numInputRows") or 0),
            rows_per_second=round(batch.get("processedRowsPerSecond") or 0.0, 1),
            lag=sum(known) if known else None,
            latency_ms=(batch.get("durationMs") or {}).get("triggerExecution"),
            state_rows=sum(each.get("numRowsTotal", 0) for each in operators),
            state_bytes=sum(each.get("memoryUsedBytes", 0) for each in operators),
            late_rows=self.late_rows
            + sum(each.get("numRowsDroppedByWatermark", 0) for each in operators),
            bad_rows=self.bad_rows + _bad(batch.get("observedMetrics") or {}),
            watermark=(batch.get("eventTime") or {}).get("watermark", self.watermark),
            batch=batch.get("batchId", self.batch),
        )


def _bad(observed: Mapping[str, Any]) -> int:
    """Return how many records of all sources could not be read."""
    return sum(
        counts.get("bad", 0) for name, counts in observed.items() if name.startswith(BAD_RECORDS_OF)
    )


def _lag(source: Mapping[str, Any]) -> int | None:
    """Return what lies between a source's offsets and its ends; None for other sources."""
    end, latest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
    if not latest:
        return None
    return sum(max(offset - end.get(place, 0), 0) for place, offset in latest.items())


def _offsets(value: object) -> dict[tuple[str, str], int]:
    """Read {"rides": {"0": 23}}, as text or as it is; leave out what is no offset."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    if not isinstance(value, Mapping):
        return {}
    return {(topic, number): offset for topic, number, offset in _entries(value)}


def _entries(value: Mapping[str, Any]) -> Iterable[tuple[str, str, int]]:
    for topic, partitions in value.items():
        if not topic.startswith("#") and isinstance(partitions, Mapping):
            for number, offset in partitions.items():
                if isinstance(offset, int):
                    yield topic, number, offset
