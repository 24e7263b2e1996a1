"""docs/benchmarks.md, read back: what an earlier run has left, on whatever machine that was.

The page has of each number the median and the range, and in its head, by group, how often it was
measured, at which commit and on what. Rounds that give the same page again stand for those that
were: the lowest, the highest, and the median as often as is left.
"""

import re

from bench.results import ROUNDS, VARYING

_FACT = re.compile(r"- ([^:]+): (.*)")
_OF_GROUPS = re.compile(r"(.*) \(([a-z]+(?:, [a-z]+)*)\)")
_NUMBER = r"(-?[\d.,]+(?:e[+-]\d+)?)"
_CELL = re.compile(rf"{_NUMBER} \({_NUMBER} to {_NUMBER}\)")


def read_page(text, cases, names_of):
    """What was measured of the cases, and with what, each by the name of the case.

    `names_of` tells which sides a case has, ours first.
    """
    facts = read_facts(text.partition("\n## ")[0])
    rows = read_rows(text)
    measured, versions = {}, {}
    for case in cases:
        if not all((case.name, bar.number) in rows for bar in case.bars):
            continue
        told = {name: value_for(case.group, facts.get(name, {})) for name in VARYING}
        # Where cases of a group were measured more often than others the page tells both.
        rounds = max(map(int, re.findall(r"\d+", told[ROUNDS])), default=1)
        cells = {bar.number: rows[case.name, bar.number] for bar in case.bars}
        measured[case.name] = {
            side: rounds_of({number: both[place] for number, both in cells.items()}, rounds)
            for place, side in enumerate(names_of(case))
        }
        versions[case.name] = told
    return measured, versions


def read_rows(text):
    """Both cells of every row, by case and number."""
    rows = {}
    for line in text.splitlines():
        cells = [each.strip() for each in line.strip("|").split("|")]
        if line.startswith("|") and _CELL.fullmatch(cells[2]):
            rows[cells[0], cells[1]] = cells[2], cells[3]
    return rows


def rounds_of(cells, count):
    """As many rounds as there were, with what the cells tell of their numbers."""
    rounds = [{} for _ in range(count)]
    for number, cell in cells.items():
        found = _CELL.fullmatch(cell)
        middle, low, high = (float(each.replace(",", "")) for each in found.groups())
        for each in rounds:
            each[number] = middle
        if count > 1:
            rounds[0][number], rounds[-1][number] = low, high
    return rounds


def read_facts(head):
    """What the page's list says of each group, by name and group."""
    facts = {}
    for line in head.splitlines():
        if (found := _FACT.fullmatch(line)) and found[1] in VARYING:
            facts[found[1]] = by_group(found[2])
    return facts


def value_for(group, values):
    """What was told of the group, or of all."""
    return values.get(group) or values.get(None) or "not told"


def by_group(told):
    """One value for each group that it names; for None, if it names none, as it is for all."""
    values = {}
    for part in told.split("; "):
        if not (found := _OF_GROUPS.fullmatch(part)):
            return {None: told}
        for group in found[2].split(", "):
            values[group] = f"{values[group]}, {found[1]}" if group in values else found[1]
    return values
