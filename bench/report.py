"""docs/benchmarks.md and its plot, from what was measured."""

import datetime
from pathlib import Path
from statistics import median

from bench import spark
from bench.case import Measure
from bench.cases import CASES
from bench.contests import contest_of
from bench.results import VARYING
from bench.stolen import STOLEN_MAX

DOCS = Path(__file__).parent.parent / "docs"
PAGE = DOCS / "benchmarks.md"


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


def cell(values):
    if values is None:
        return ""
    return f"{short(median(values))} ({short(min(values))} to {short(max(values))})"


def short(value):
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


HEAD = """\
# Strom and Apache Kafka, side by side

Written by `make bench`; do not edit. Both brokers are loaded in turn, case by case, on the same
machine and disk, with their defaults but that deleted files go at once, in rounds, alternating
which goes first; Strom on the system's own Python, if it is of the same version, as Kafka on its
Java. A cell is the median (and the range) of these, the ratio is Strom : Kafka of the
medians. In the section on Spark two connectors are compared in the same way, at one broker. Loads
come from librdkafka (`bench/load.py`, `bench/coordinators.py`) and, for Java's batches, from
Kafka's own producer-perf-test and consumer-perf-test. What librdkafka consumes is read by kcat,
from its start to its end, on one core, and told not to rest while its queue is full, nor at the end
of a partition. Kafka's tools run in a JVM that stays up for all loads (`bench/perf_tools.py`), so
that its code is compiled. Loads are short, and run three times in each round, in turn. MB are 10^6
bytes of values; CPU is the broker's, user and system, for all of it. For groups both brokers
are told not to wait for more members or between assignments; their members (`bench/members.py`)
have no waits of their own, as a client library has: a heartbeat is due when there may be something
to hear. A commit of a transaction is timed from when its records are written. The bar of producers
beside compaction is on Strom's own number. The KB per partition are what 3,000 more of them add:
for Kafka to the objects alive on its heap after a full collection, for Strom to all of its
anonymous memory. Where the machine is a virtual one, its host takes processor time for others, now
and then half of it. A run waits until it is quiet, within limits, and one that lost more than
{stolen_max:.0%} is made once more, on either side alike; the better one counts (`bench/stolen.py`).

{versions}

**{met} of {total} bars met** ({cases} of the bench's {all_cases} cases were run).

![ratios](benchmarks.svg)

"""
TABLE = """\
| case | number | {own} | {peer} | ratio | bar | |
|---|---|---|---|---|---|---|
"""


def write(results, versions):
    """Write the page and the plot; the rows."""
    cases = results.of(CASES)
    rows = [Row(case, bar, results.measured[case.name]) for case in cases for bar in case.bars]
    results.sum_up(cases)
    versions = versions | {name: results.told(name, cases) for name in VARYING}
    told = "\n".join(f"- {name}: {value}" for name, value in versions.items())
    today = datetime.datetime.now(datetime.UTC).date()
    text = HEAD.format(
        versions=f"- date: {today}\n{told}",
        met=sum(row.met for row in rows),
        total=sum(row.counts for row in rows),
        cases=len(cases),
        all_cases=len(CASES),
        stolen_max=STOLEN_MAX,
    )
    for group in dict.fromkeys(case.group for case in cases):
        text += section(group, [row for row in rows if row.case.group == group])
    DOCS.mkdir(exist_ok=True)
    PAGE.write_text(text.rstrip() + "\n")
    plot([row for row in rows if row.is_plotted])
    return rows


#: What is to be known of a group beyond what is said of all.
INTROS = {"spark": spark.intro}


def section(group, rows):
    """The group's table, headed by who was compared."""
    own, peer = contest_of(rows[0].case).names
    intro = f"{INTROS[group]()}\n" if group in INTROS else ""
    lines = "\n".join(row.line() for row in rows)
    return f"## {group.capitalize()}\n\n{intro}{TABLE.format(own=own, peer=peer)}{lines}\n\n"


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
    axes.hlines(places, 1, [row.found for row in rows], color=colours, linewidth=4)
    bars = [row.bar.limit for row in rows]
    axes.plot(bars, places, "|", color="black", markersize=8, label="bar")
    axes.set_yticks(places, [f"{row.case.name}: {row.bar.number}" for row in rows], fontsize=6)
    axes.set_xscale("log")
    axes.axvline(1, color="grey", linewidth=0.8)
    axes.set_xlabel("Strom : its peer")
    axes.legend(loc="lower right", fontsize=7)
    figure.tight_layout()
    figure.savefig(DOCS / "benchmarks.svg", metadata={"Date": None})
    pyplot.close(figure)
