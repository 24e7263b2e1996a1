"""`make bench`: measure Strom and its peers in turn and write docs/benchmarks.md.

python -m bench --list
python -m bench --rounds 3
python -m bench --cases 'throughput: 1 KB' --rounds 1 --quick
python -m bench --cases groups --add
"""

import argparse
import fcntl
import functools
import itertools
import re
import sys
import time
from contextlib import contextmanager

from bench import report
from bench.case import Effort, in_turn
from bench.cases import CASES
from bench.contests import contest_of
from bench.page import read_page
from bench.results import Results
from bench.sides import BUILD, Strom, versions
from bench.stolen import QUIET, STOLEN

LET_IN_SECONDS = 0.2
QUICK = Effort(
    seconds=1,
    load_seconds=0.5,
    java_mb=50,
    latency_seconds=2,
    warm_seconds=1,
    partitions_many=1000,
    repetitions=1,
    compacted_mb=20,
    spark_mb=20,
    spark_reads=3,
)


def main():
    options = read_options()
    chosen = [case for case in CASES if re.search(options.cases, f"{case.group}: {case.name}")]
    if options.list:
        print("\n".join(f"{case.group}: {case.name}" for case in chosen))
        return
    if not chosen:
        sys.exit(f"no case matches {options.cases!r}; --list shows them")
    Strom.install()
    results = Results(BUILD / "bench.json", *(earlier() if options.add else ()))
    rows, told = [], versions()
    for contest, cases in itertools.groupby(chosen, key=contest_of):
        if reason := contest.missing():
            say(reason)
            continue
        rows = hold(contest, list(cases), options, results, told)
    for row in rows:
        say(row.line())


def earlier():
    """What the page tells of earlier runs, here or elsewhere."""
    return read_page(report.PAGE.read_text(), CASES, sides_of)


def sides_of(case):
    return contest_of(case).names[: 1 if case.is_alone else None]


def hold(contest, cases, options, results, told):
    """Measure the cases in as many rounds; the rows of the report."""
    effort = QUICK if options.quick else Effort()
    alone = functools.partial(locked, options.lock)
    for case in cases:
        results.begin(case, sides_of(case), told)
    try:
        for number in range(options.rounds):
            for group, of_group in itertools.groupby(cases, key=lambda case: case.group):
                say(f"round {number + 1}/{options.rounds}, {group}")
                with contest.sides(group, effort, alone) as sides:
                    # Whoever goes first finds the machine as the other left it; take turns.
                    turns = sides if number % 2 == 0 else sides[::-1]
                    run_group(turns, of_group, effort, results, alone)
            # After each round, so that a run that is cut off has something to show.
            results.write()
            rows = report.write(results, told)
    finally:
        contest.close()
    return rows


def read_options():
    parser = argparse.ArgumentParser(prog="bench", description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cases", default="", help="regular expression over 'group: name'")
    parser.add_argument("--quick", action="store_true", help="short loads, to try the bench")
    parser.add_argument("--add", action="store_true", help="keep the other cases of earlier runs")
    parser.add_argument("--list", action="store_true", help="name the cases and stop")
    parser.add_argument("--lock", help="a file to lock around each case, as other heavy work does")
    return parser.parse_args()


def run_group(sides, cases, effort, results, alone):
    """Run the cases on both sides, in turn.

    The machine changes over minutes (its page cache, its host), so the two runs of a case are
    next to each other.
    """
    for case in cases:
        with alone():
            for side in in_turn(sides, case.turns):
                if results.wants(case, side):
                    run_case(case, side, effort, results)


def run_case(case, side, effort, results):
    begin = time.monotonic()
    numbers = QUIET.run(lambda: case.run(side, effort), case.repeats)
    results.add(case, side, numbers)
    told = ", ".join(f"{bar.number} {report.short(numbers[bar.number])}" for bar in case.bars)
    taken = f"{numbers[STOLEN]:.0%} stolen"
    say(f"  {case.name}: {side.name} {told}  ({time.monotonic() - begin:.0f} s, {taken})")


@contextmanager
def locked(lock):
    """Hold the lock, if there is one, so that what else takes it does not run meanwhile."""
    if lock is None:
        yield
        return
    # Whoever waits for it gets it first.
    time.sleep(LET_IN_SECONDS)
    with open(lock, "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def say(text):
    print(text, flush=True)


main()
