"""What was measured: by case and side the numbers of each round; at which commit, and on what.

Kept in a file, so that cases which changed can be measured again without the hour of the others. A
ratio is always of one run: a case that is measured again begins anew, on both sides.
"""

import json

#: What may differ from one run to the next.
VARYING = ("Strom", "machine")


class Results:
    """The numbers of the cases; those of earlier runs too, if they are read first."""

    def __init__(self, path):
        self._path = path
        #: By case and side, a dict of numbers for each round.
        self.measured = {}
        #: By case what was measured, and on what machine.
        self.versions = {}

    def read(self):
        """Take in what earlier runs have left, if anything."""
        if self._path.exists():
            kept = json.loads(self._path.read_text())
            self.measured, self.versions = kept["measured"], kept["versions"]

    def begin(self, case, sides, versions):
        """Forget what is known of the case, which will be measured on these sides, ours first."""
        self.measured[case.name] = {side: [] for side in sides}
        self.versions[case.name] = {name: versions[name] for name in VARYING}

    def wants(self, case, side):
        """Tell whether the case is measured on this side."""
        return side.name in self.measured[case.name]

    def add(self, case, side, numbers):
        """Note one round of a case."""
        self.measured[case.name][side.name].append(numbers)

    def write(self):
        """Leave the raw numbers for whoever wants to look closer, and for later runs."""
        self._path.parent.mkdir(exist_ok=True)
        kept = {"measured": self.measured, "versions": self.versions}
        self._path.write_text(json.dumps(kept, indent=1))

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
