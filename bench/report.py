"""docs/benchmarks.md and its plots, from what was measured."""

import datetime
from pathlib import Path
from statistics import median

from bench.cases import CASES

DOCS = Path(__file__).parent.parent / "docs"


class Row:
    """One bar of one case: both medians, their spread, the ratio, and whether it is enough."""

    def __init__(self, case, bar, measured):
        self.case, self.bar = case, bar
        self.values = {
            side: [numbers[bar.number] for numbers in rounds] for side, rounds in measured.items()
        }
        self.ratio = median(self.values["Strom"])
        if not bar.is_own:
            self.ratio /= median(self.values["Kafka"])
        self.met = bar.is_met(self.ratio)

    def cell(self, side):
        values = self.values[side]
        return f"{short(median(values))} ({short(min(values))} to {short(max(values))})"

    def line(self):
        verdict = "met" if self.met else f"**missed by {self.distance():.0%}**"
        cells = (self.case.name, self.bar.number, self.cell("Strom"), self.cell("Kafka"))
        return f"| {' | '.join(cells)} | {self.ratio:.2f} | {self.bar} | {verdict} |"

    def distance(self):
        wanted = self.bar.at_least if self.bar.at_least is not None else self.bar.at_most
        return abs(self.ratio / wanted - 1)


def short(value):
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


HEAD = """\
# Strom and Apache Kafka, side by side

Written by `make bench`; do not edit. Both brokers are loaded in turn, case by case, on the same
machine and disk with their defaults; rounds: {rounds}, alternating which goes first. A cell is the
median (and the range) over the rounds, the ratio is Strom : Kafka of the medians. Loads come from
librdkafka (`bench/load.py`, `bench/coordinators.py`) and, for Java's batches, from Kafka's own
producer-perf-test and consumer-perf-test. librdkafka's consumer is told not to rest for a second
when its queue is full (`fetch.queue.backoff.ms`). MB are 10^6 bytes of values; CPU is the broker's,
user and system. For groups both brokers are told not to wait for more members or between
assignments; their members (`bench/members.py`) have no waits of their own, as a client library has:
a heartbeat is due when there may be something to hear.
A commit of a transaction is timed from when its records are written. The bar of producers beside
compaction is on Strom's own number. The KB per partition are what 3,000 more of them add: for Kafka
to the objects alive on its heap after a full collection, for Strom to all of its anonymous memory.

{versions}

**{met} of {total} bars met** ({cases} of the bench's {all_cases} cases were run).

![ratios](benchmarks.svg)

"""
TABLE = """\
| case | number | Strom | Kafka | ratio | bar | |
|---|---|---|---|---|---|---|
"""


def write(results, versions):
    """Write the page and the plot; the rows."""
    cases = results.of(CASES)
    rows = [Row(case, bar, results.measured[case.name]) for case in cases for bar in case.bars]
    versions = {**versions, "Strom": results.told_commits(cases)}
    told = "\n".join(f"- {name}: {value}" for name, value in versions.items())
    today = datetime.datetime.now(datetime.UTC).date()
    text = HEAD.format(
        rounds=told_rounds(results, cases),
        versions=f"- date: {today}\n{told}",
        met=sum(row.met for row in rows),
        total=len(rows),
        cases=len(cases),
        all_cases=len(CASES),
    )
    for group in dict.fromkeys(case.group for case in cases):
        lines = "\n".join(row.line() for row in rows if row.case.group == group)
        text += f"## {group.capitalize()}\n\n{TABLE}{lines}\n\n"
    DOCS.mkdir(exist_ok=True)
    (DOCS / "benchmarks.md").write_text(text.rstrip() + "\n")
    plot(rows)
    return rows


def told_rounds(results, cases):
    """How often the cases were measured."""
    found = {len(rounds) for case in cases for rounds in results.measured[case.name].values()}
    return " to ".join(str(each) for each in sorted({min(found), max(found)}))


def plot(rows):
    """Each ratio as a line from 1, with its bar as a mark."""
    import matplotlib as mpl

    mpl.use("svg")
    # Letters, not their outlines: a tenth of the size.
    mpl.rcParams["svg.fonttype"] = "none"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(10, 0.22 * len(rows) + 1.5))
    places = range(len(rows), 0, -1)
    colours = ["#2a7f62" if row.met else "#b3432b" for row in rows]
    axes.hlines(places, 1, [row.ratio for row in rows], color=colours, linewidth=4)
    bars = [row.bar.at_least or row.bar.at_most for row in rows]
    axes.plot(bars, places, "|", color="black", markersize=8, label="bar")
    axes.set_yticks(places, [f"{row.case.name}: {row.bar.number}" for row in rows], fontsize=6)
    axes.set_xscale("log")
    axes.axvline(1, color="grey", linewidth=0.8)
    axes.set_xlabel("Strom : Kafka")
    axes.legend(loc="lower right", fontsize=7)
    figure.tight_layout()
    figure.savefig(DOCS / "benchmarks.svg", metadata={"Date": None})
    pyplot.close(figure)
