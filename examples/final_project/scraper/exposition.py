"""A broker's /metrics page as values: one per series, when it says something else than before."""

import json
from collections.abc import Iterator
from math import isfinite

from prometheus_client.parser import text_string_to_metric_families

from examples.final_project.scraper.facts import Value
from examples.final_project.scraper.tables import UnreadableError

SERIES_MAX = 10_000


def values(text: str, prefixes: tuple[str, ...]) -> Iterator[tuple[str, Value]]:
    """Yield each wanted series with its value; the series is named as on the page."""
    found = 0
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if not sample.name.startswith(prefixes) or not isfinite(sample.value):
                    continue
                found += 1
                if found > SERIES_MAX:
                    raise UnreadableError(f"size: more than {SERIES_MAX} series")
                labels = json.dumps(sample.labels, sort_keys=True)
                value: Value = {
                    "metric": sample.name,
                    "labels": labels,
                    "value": float(sample.value),
                }
                yield f"{sample.name}{labels}", value
    except (ValueError, KeyError, IndexError) as error:
        raise UnreadableError(f"layout: not the text format of metrics: {error}") from error
    if not found:
        raise UnreadableError("layout: the page has none of the wanted metrics")
