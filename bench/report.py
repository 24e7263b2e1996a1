"""What is told of a case: one row for each of its bars, with both sides and what is compared."""

from statistics import median

from bench.case import Measure
from bench.cases import CASES


class Row:
    """One bar of one case: both medians, their spread, what is compared, and if it is enough."""

    def __init__(self, case, bar, measured):
        self.case, self.bar = case, bar
        values = [[numbers[bar.number] for numbers in rounds] for rounds in measured.values()]
        self.own, self.peer = values if len(values) == 2 else (values[0], None)
        #: A row without a limit only tells a number.
        self.counts = bar.limit is not None
        self.met = False
        if self.counts:
            self.found = bar.compare(median(self.own), self.peer and median(self.peer))
            self.met = bar.is_met(self.found)

    @property
    def is_plotted(self):
        return self.counts and self.bar.of is not Measure.DIFFERENCE

    def line(self):
        cells = (self.case.name, self.bar.number, cell(self.own), cell(self.peer), self.compared())
        return f"| {' | '.join(cells)} | {self.bar} | {self.verdict()} |"

    def compared(self):
        if not self.counts:
            return ""
        return f"{self.found:{'+' if self.bar.of is Measure.DIFFERENCE else ''}.2f}"

    def verdict(self):
        if not self.counts:
            return ""
        return "met" if self.met else f"**missed by {abs(self.found / self.bar.limit - 1):.0%}**"


def rows_of(results):
    """A row for each bar of each case that was measured on all its sides."""
    return [
        Row(case, bar, results.measured[case.name])
        for case in results.of(CASES)
        for bar in case.bars
    ]


def cell(values):
    if values is None:
        return ""
    return f"{short(median(values))} ({short(min(values))} to {short(max(values))})"


def short(value):
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"
