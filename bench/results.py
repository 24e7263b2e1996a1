"""What a run measured: by case and side the numbers of each time; with what, and on what machine.

A run leaves it in .setup/results.json. The page is made of nothing else (`bench.page`).
"""

import json
from statistics import median

from bench.sides import BUILD
from bench.stolen import STOLEN

PATH = BUILD / "results.json"


class Results:
    """The numbers of one run's cases, and the facts about the run."""

    def __init__(self, facts, measured=None):
        #: Date, versions and machine, by name.
        self.facts = facts
        #: By case and side, a dict of numbers for each time.
        self.measured = measured or {}

    @classmethod
    def read(cls, path):
        """The results that a run left."""
        return cls(**json.loads(path.read_text()))

    def write(self, path):
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"facts": self.facts, "measured": self.measured}, indent=1))

    def begin(self, case, sides):
        """Make room for a case, which will be measured on these sides, ours first."""
        self.measured[case.name] = {side: [] for side in sides}

    def wants(self, case, side):
        """Tell whether the case is measured on this side."""
        return side.name in self.measured[case.name]

    def add(self, case, side, numbers):
        """Note what a case gave on a side."""
        self.measured[case.name][side.name].append(numbers)

    def of(self, cases):
        """Return those of the cases that were measured on all their sides."""
        return [case for case in cases if all(self.measured.get(case.name, {"": []}).values())]

    def rounds(self, cases):
        """In how many rounds the cases were measured."""
        counts = {
            len(found) // case.turns
            for case in cases
            for found in self.measured[case.name].values()
        }
        return " to ".join(map(str, sorted({min(counts), max(counts)})))

    def stolen(self, cases):
        """How much of the processors' time the host took from the runs of each side."""
        lost = {}
        for case in cases:
            for side, found in self.measured[case.name].items():
                shares = [each[STOLEN] for each in found if each[STOLEN] is not None]
                lost.setdefault(side, []).extend(shares)
        told = (
            f"{side} {median(shares):.1%} (up to {max(shares):.0%})"
            for side, shares in lost.items()
            if shares
        )
        return ", ".join(told) or "not told"
