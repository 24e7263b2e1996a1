"""`make bench-page`: write docs/benchmarks.md and its plot from the results of one run.

The page takes a run of all cases: a part would stand beside nothing else.
"""

import sys
from pathlib import Path

from bench import spark
from bench.cases import CASES
from bench.contests import contest_of
from bench.report import rows_of
from bench.results import PATH, Results

DOCS = Path(__file__).parent.parent / "docs"

HEAD = """\
# Strom and Apache Kafka, side by side

Made by `make bench-page` from one run of `make bench`; do not edit. Both brokers are loaded in
turn, case by case, on the same machine and disk, with their defaults but that deleted files go at
once, in rounds, alternating which goes first; Strom on the system's own Python, if it is of the
same version, as Kafka on its Java. A cell is the median (and the range) of these, the ratio is
Strom : Kafka of the medians. In the section on Spark two connectors are compared in the same way,
at one broker. Loads come from librdkafka (`bench/load.py`, `bench/coordinators.py`) and, for Java's
batches, from Kafka's own producer-perf-test and consumer-perf-test. What librdkafka consumes is
read by kcat, from its start to its end, on one core, and told not to rest while its queue is full,
nor at the end of a partition. Kafka's tools run in a JVM that stays up for all loads
(`bench/perf_tools.py`), so that its code is compiled. Loads are short, and run three times in each
round, in turn. MB are 10^6 bytes of values; CPU is the broker's, user and system, for all of it.
For groups both brokers are told not to wait for more members or between assignments; their members
(`bench/members.py`) have no waits of their own, as a client library has: a heartbeat is due when
there may be something to hear. A commit of a transaction is timed from when its records are
written. The bar of producers beside compaction is on Strom's own number. The KB per partition are
what 3,000 more of them add: for Kafka to the objects alive on its heap after a full collection, for
Strom to all of its anonymous memory. Where the machine is a virtual one, its host takes processor
time for others, now and then half of it; the list has what the runs lost: the median and the most.

{facts}

**{met} of {total} bars met.**

![ratios](benchmarks.svg)

"""
TABLE = """\
| case | number | {own} | {peer} | ratio | bar | |
|---|---|---|---|---|---|---|
"""
#: What is to be known of a group beyond what is said of all.
INTROS = {"spark": f"{spark.INTRO}\n"}


def main():
    if not PATH.exists():
        sys.exit(f"there is no {PATH}: run make bench")
    results = Results.read(PATH)
    if missing := len(CASES) - len(results.of(CASES)):
        sys.exit(f"{PATH} lacks {missing} of {len(CASES)} cases, and the page takes all of one run")
    write(results, DOCS)


def write(results, directory):
    """Write the page and the plot."""
    rows = rows_of(results)
    (directory / "benchmarks.md").write_text(page_of(results, rows))
    plot([row for row in rows if row.is_plotted], directory / "benchmarks.svg")


def page_of(results, rows):
    """The text of the page."""
    cases = results.of(CASES)
    facts = {
        **results.facts,
        "rounds": results.rounds(cases),
        "taken by the host": results.stolen(cases),
    }
    text = HEAD.format(
        facts="\n".join(f"- {name}: {value}" for name, value in facts.items()),
        met=sum(row.met for row in rows),
        total=sum(row.counts for row in rows),
    )
    for group in dict.fromkeys(case.group for case in cases):
        text += section(group, [row for row in rows if row.case.group == group])
    return text.rstrip() + "\n"


def section(group, rows):
    """The group's table, headed by who was compared."""
    own, peer = contest_of(rows[0].case).names
    lines = "\n".join(row.line() for row in rows)
    table = TABLE.format(own=own, peer=peer)
    return f"## {group.capitalize()}\n\n{INTROS.get(group, '')}{table}{lines}\n\n"


def plot(rows, path):
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
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


if __name__ == "__main__":
    main()
