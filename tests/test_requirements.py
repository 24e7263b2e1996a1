"""docs/requirements.md is true: every row is there, and what it says proves it exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
#: What one node can be asked for: whole groups of rows, and some of others.
COUNTS = {"LOG": 14, "TOP": 24, "MSG": 16, "PRO": 23, "BRK": 24, "DSK": 21, "RET": 9, "CON": 15}
COUNTS |= {"OFS": 13, "GRP": 18, "CMP": 12, "TXN": 14}
SINGLE = ["ACK-01", "ACK-02", "ACK-06", "ACK-08", "ACK-09"]
SINGLE += [f"STR-{n:02d}" for n in (1, 2, 3, 4, 5, 6, 7, 9, 10, 13, 14, 16, 19, 20)]
SINGLE += ["CLU-10", "CLU-11", "CLU-13", "MON-01", "MON-07", "MON-12"]
SINGLE += ["PRJ-01", "PRJ-02", "PRJ-03", "PRJ-04", "PRJ-07", "USE-02", "USE-04"]
SINGLE += [f"ARC-{n:02d}" for n in (2, 3, 4, 5, 11)]
SINGLE += ["STR-11", "STR-15", "STR-17", "CNT-13", "MON-05", "PRJ-05", "PRJ-06", "PRJ-09", "USE-01"]
ASKED = [f"{group}-{n:02d}" for group, count in COUNTS.items() for n in range(1, count + 1)]

ROW = re.compile(r"^\| (?P<id>[A-Z]{3}-\d\d) \| (?P<what>.+?) \| (?P<proof>.+) \|$", re.MULTILINE)
CITED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
ROWS = {
    each["id"]: each["proof"] for each in ROW.finditer((ROOT / "docs/requirements.md").read_text())
}


def test_every_row_is_there():
    assert sorted(ROWS) == sorted(ASKED + SINGLE)


def test_every_test_that_is_named_exists():
    for row, proof in ROWS.items():
        for path, name in CITED.findall(proof):
            defined = re.search(rf"^(async )?def {name}\(", (ROOT / path).read_text(), re.MULTILINE)
            assert defined, f"{row}: {path} has no {name}"


def test_every_row_is_named_where_it_is_proven_or_says_why_not():
    for row, proof in ROWS.items():
        cited = {path for path, _ in CITED.findall(proof)}
        assert cited or len(proof.split()) > 1, f"{row} has neither test nor reason"
        named = [path for path in cited if is_named(row, (ROOT / path).read_text())]
        assert named or not cited, f"{row} is named in none of {sorted(cited)}"


def is_named(row, text):
    """Whether tests say that they are of a row: in words, in the name of one, or in a range."""
    group, number = row.split("-")
    in_names = rf"def test_(\w+_)?{group.lower()}(_\d\d)*_{number}_"
    ranges = re.findall(rf"{group}-(\d\d) to {group}-(\d\d)", text)
    return (
        row in text
        or re.search(in_names, text)
        or any(first <= number <= last for first, last in ranges)
    )
