"""The definitions of all settings, read from `settings.txt`, whose head says what is in it.

The file is package data. It is read while this module is imported, from where the package is.
"""

import pkgutil
from typing import Final

from strom.metadata.settings.checks import check_of
from strom.metadata.settings.definition import CLUSTER_WIDE, TYPE_NAMES, USED, Setting, parse

PACKAGE: Final = "strom.metadata.settings"
FILE: Final = "settings.txt"
#: The section of the reasons why settings have no effect, by the names that the others use.
REASONS: Final = "no effect"
#: What the sections of a broker's settings begin with; the subject follows.
OF_BROKER: Final = "broker: "
NULL: Final = "null"

TYPES: Final = {name: code for code, name in enumerate(TYPE_NAMES)}


def read_table() -> dict[str, dict[str, Setting]]:
    """Return the definitions of each section, by their names."""
    data = pkgutil.get_data(PACKAGE, FILE)
    assert data is not None
    sections: dict[str, list[list[str]]] = {}
    rows: list[list[str]] = []
    for line in data.decode().splitlines():
        if line.startswith("["):
            rows = sections[line[1:-1]] = []
        elif line and line[0] != "#":
            rows.append(list(map(str.strip, line.split("|"))))
    reasons = {"": USED, **dict(sections.pop(REASONS))}
    return {
        title: {cells[0]: read_setting(cells, title, reasons) for cells in rows}
        for title, rows in sections.items()
    }


def read_setting(cells: list[str], section: str, reasons: dict[str, str]) -> Setting:
    """Return the definition that a line is; an error tells which line it is."""
    try:
        name, type_name, default, valid, importance, change, hidden, reason, purpose = cells
        kind = TYPES[type_name]
        of_broker = section.startswith(OF_BROKER)
        return Setting(
            name,
            kind,
            None if default == NULL else parse(name, kind, default),
            check_of(kind, valid),
            importance,
            change if of_broker else CLUSTER_WIDE,
            "" if of_broker else change,
            hidden,
            reasons[reason],
            purpose,
        )
    except (KeyError, ValueError) as problem:
        problem.add_note(f"in {FILE}: {' | '.join(cells)}")
        raise
