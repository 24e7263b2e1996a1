"""Looks after the others: says in its log when a part, the flow or the disk falls ill or gets well.

python -m examples.final_project.watch [--dir DIR]
"""

import logging
from collections.abc import Mapping

from examples.final_project.deployment import health
from examples.final_project.deployment.parts import WATCH, parts_of
from examples.final_project.part import Part, asked_to_end, begin, parser_of

LOOK_SECONDS = 10.0

log = logging.getLogger(__name__)


def main() -> None:
    """Look, and say what has changed, until asked to end."""
    options = parser_of("watch", "Says in its log what ails the other parts.").parse_args()
    part = begin("watch", options.dir)
    asked = asked_to_end()
    known: dict[str, str | None] = {}
    while True:
        tell(known, looked(part))
        part.pulse({"ill": sum(map(bool, known.values()))})
        if asked.wait(LOOK_SECONDS):
            return


def tell(known: dict[str, str | None], found: Mapping[str, str | None]) -> None:
    """Say of what has fallen ill, or is well again; and remember it."""
    for name, ailment in found.items():
        if bool(known.get(name)) != bool(ailment):
            log.warning("%s: %s", name, ailment or "well again")
        known[name] = ailment


def looked(part: Part) -> dict[str, str | None]:
    """Return what ails each part, the flow and the disk."""
    others = [each.name for each in parts_of(part.settings) if each is not WATCH]
    found = {name: health.ailment(name, part.place, part.settings) for name in others}
    flow = health.quiet(part.place, part.settings)
    return {**found, "flow": flow, "disk": health.disk(part.place, part.settings)}


if __name__ == "__main__":
    main()
