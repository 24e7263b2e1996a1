"""Looks after the others: says in its log when a part falls ill or gets well, and so of the flow.

python -m examples.final_project.watch [--dir DIR]
"""

import logging

from examples.final_project.deployment import health
from examples.final_project.deployment.parts import WATCH, parts_of
from examples.final_project.part import Part, asked_to_end, begin, parser_of

LOOK_SECONDS = 10.0
FLOW = "flow"

log = logging.getLogger(__name__)


def main() -> None:
    """Look, and say what has changed, until asked to end."""
    options = parser_of("watch", "Says in its log what ails the other parts.").parse_args()
    part = begin("watch", options.dir)
    asked = asked_to_end()
    known: dict[str, str | None] = {}
    while True:
        for name, ailment in looked(part).items():
            if bool(known.get(name)) != bool(ailment):
                log.warning("%s: %s", name, ailment or "well again")
            known[name] = ailment
        part.pulse({"ill": sum(map(bool, known.values()))})
        if asked.wait(LOOK_SECONDS):
            return


def looked(part: Part) -> dict[str, str | None]:
    """Return what ails each part, and the flow."""
    others = [each.name for each in parts_of(part.settings) if each is not WATCH]
    found = {name: health.ailment(name, part.place, part.settings) for name in others}
    return {**found, FLOW: health.quiet(part.place, part.settings)}


if __name__ == "__main__":
    main()
