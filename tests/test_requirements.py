"""docs/requirements.md is true: every row is there, and what it says proves it exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
#: What one node can be asked for: whole groups of rows, and some of others.
COUNTS = {"LOG": 14, "TOP": 24, "MSG": 16, "PRO": 23, "BRK": 24, "DSK": 21, "RET": 9, "CON": 15}
COUNTS |= {"OFS": 13, "GRP": 18, "CMP": 12, "TXN": 14}
SINGLE = ["ACK-01", "ACK-02", "ACK-06"]
SINGLE += [f"STR-{n:02d}" for n in (1, 2, 3, 4, 5, 6, 7, 9, 10, 13, 14, 16, 19, 20)]
SINGLE += ["CLU-10", "CLU-11", "CLU-13", "MON-01", "MON-12"]
SINGLE += ["PRJ-01", "PRJ-02", "PRJ-03", "PRJ-04", "PRJ-07", "USE-02", "USE-04"]
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


def test_every_row_is_named_by_a_test_or_says_why_not():
    others = [path for path in (ROOT / "tests").rglob("test_*.py") if path != Path(__file__)]
    text = "\n".join(path.read_text() for path in others)
    for row, proof in ROWS.items():
        group, number = row.lower().split("-")
        in_names = re.search(rf"def test_(\w+_)?{group}(_\d\d)*_{number}_", text)
        assert row in text or in_names or not CITED.search(proof), f"no test names {row}"
        assert CITED.search(proof) or len(proof.split()) > 1, f"{row} has neither test nor reason"
