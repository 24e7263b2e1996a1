"""What was measured: by case and side the numbers of each round; at which commit, and on what.

Cases that changed can be measured again without the hours of the others, of which the page tells
(`bench.page`). A ratio is always of one run: a case that is measured again begins anew, on both
sides.
"""

import json
from statistics import median

from bench.stolen import STOLEN

#: How often a case was measured, and what its host took meanwhile.
ROUNDS, TAKEN = "rounds", "taken by the host"
#: What is told of what is measured, and may differ from one run to the next.
GIVEN = ("Strom", "Python", "machine")
VARYING = (*GIVEN, ROUNDS, TAKEN)


class Results:
    """The numbers of the cases; those of earlier runs too, if they are taken in."""

    def __init__(self, path, measured=None, versions=None):
        self._path = path
        #: By case and side, a dict of numbers for each round.
        self.measured = measured or {}
        #: By case what was measured, and on what machine.
        self.versions = versions or {}
        #: The names of the cases that are measured in this run.
        self._fresh = set()

    def begin(self, case, sides, versions):
        """Forget what is known of the case, which will be measured on these sides, ours first."""
        self.measured[case.name] = {side: [] for side in sides}
        self.versions[case.name] = {name: versions[name] for name in GIVEN}
        self._fresh.add(case.name)

    def wants(self, case, side):
        """Tell whether the case is measured on this side."""
        return side.name in self.measured[case.name]

    def add(self, case, side, numbers):
        """Note one round of a case."""
        self.measured[case.name][side.name].append(numbers)

    def write(self):
        """Leave the raw numbers for whoever wants to look closer."""
        self._path.parent.mkdir(exist_ok=True)
        kept = {"measured": self.measured, "versions": self.versions}
        self._path.write_text(json.dumps(kept, indent=1))

    def sum_up(self, cases):
        """Note of what was measured in this run how often it was, and what its groups lost."""
        fresh = [case for case in cases if case.name in self._fresh]
        for group in {case.group for case in fresh}:
            of_group = [case for case in fresh if case.group == group]
            taken = self._taken(of_group)
            for case in of_group:
                told = self.versions[case.name]
                told[TAKEN] = taken
                told[ROUNDS] = str(max(map(len, self.measured[case.name].values())))

    def _taken(self, cases):
        """How much of the processors' time the runs lost that count, by side."""
        lost = {}
        for case in cases:
            for side, rounds in self.measured[case.name].items():
                lost.setdefault(side, []).extend(each[STOLEN] for each in rounds if STOLEN in each)
        told = (
            f"{side} {median(shares):.1%} (up to {max(shares):.0%})"
            for side, shares in lost.items()
            if shares
        )
        return ", ".join(told) or "not told"

    def of(self, cases):
        """Return those of the cases that were measured on all their sides."""
        return [case for case in cases if all(self.measured.get(case.name, {"": []}).values())]

    def told(self, name, cases):
        """Return what of that name the cases were measured with, by group if they differ."""
        groups = {}
        for case in cases:
            groups.setdefault(self.versions[case.name][name], {})[case.group] = None
        if len(groups) == 1:
            return next(iter(groups))
        return "; ".join(f"{value} ({', '.join(names)})" for value, names in groups.items())
