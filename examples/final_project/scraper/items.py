"""A JSON answer as objects, and where it goes on; or the reason why it is none."""

import json
from typing import Any, NoReturn

from examples.final_project.scraper.jobs import Items
from examples.final_project.scraper.tables import ROWS_MAX, UnreadableError


def read(text: str, items: Items) -> tuple[list[Any], str | None]:
    """Return the objects of an answer, and the address of the next page or None."""
    try:
        # What is no number in JSON is one to Python, and would be none again in a topic.
        said = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"layout: no JSON: {error}") from None
    found = said.get(items.items) if isinstance(said, dict) else None
    if not isinstance(found, list):
        raise UnreadableError(f"layout: there is no list '{items.items}'")
    if len(found) > ROWS_MAX:
        raise UnreadableError(f"size: '{items.items}' has more than {ROWS_MAX} objects")
    following = said.get(items.following) if items.following else None
    if following is not None and not isinstance(following, str):
        raise UnreadableError(f"layout: '{items.following}' is no address")
    return found, following


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number")
