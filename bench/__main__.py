"""`make bench`: measure Strom and its peers in turn; the numbers go to .setup/results.json.

python -m bench --list
python -m bench --rounds 3
python -m bench --cases 'throughput: 1 KB' --rounds 1 --quick
"""

import argparse
import datetime
import fcntl
import functools
import itertools
import re
import sys
import time
from contextlib import contextmanager

from bench import spark
from bench.case import Effort, in_turn
from bench.cases import CASES
from bench.contests import contest_of
from bench.report import rows_of, short
from bench.results import PATH, Results
from bench.sides import Strom, versions
from bench.stolen import STOLEN, processor_times, share

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
    results = Results(facts())
    for contest, cases in itertools.groupby(chosen, key=contest_of):
        if reason := contest.missing():
            say(reason)
            continue
        hold(contest, list(cases), options, results)
    for row in rows_of(results):
        say(row.line())


def facts():
    """What is compared, when, and on what."""
    today = datetime.datetime.now(datetime.UTC).date()
    return {"date": str(today), **versions(), **spark.versions()}


def hold(contest, cases, options, results):
    """Measure the cases in as many rounds."""
    effort = QUICK if options.quick else Effort()
    alone = functools.partial(locked, options.lock)
    for case in cases:
        results.begin(case, contest.names[: 1 if case.is_alone else None])
    try:
        for number in range(options.rounds):
            for group, of_group in itertools.groupby(cases, key=lambda case: case.group):
                say(f"round {number + 1}/{options.rounds}, {group}")
                with contest.sides(group, effort, alone) as sides:
                    # Whoever goes first finds the machine as the other left it; take turns.
                    turns = sides if number % 2 == 0 else sides[::-1]
                    run_group(turns, of_group, effort, results, alone)
            # After each round, so that a run that is cut off has something to show.
            results.write(PATH)
    finally:
        contest.close()


def read_options():
    parser = argparse.ArgumentParser(prog="bench", description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cases", default="", help="regular expression over 'group: name'")
    parser.add_argument("--quick", action="store_true", help="short loads, to try the bench")
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
    begin, before = time.monotonic(), processor_times()
    numbers = case.run(side, effort)
    stolen = share(before, processor_times())
    results.add(case, side, {**numbers, STOLEN: stolen})
    told = ", ".join(f"{bar.number} {short(numbers[bar.number])}" for bar in case.bars)
    lost = "" if stolen is None else f", {stolen:.0%} stolen"
    say(f"  {case.name}: {side.name} {told}  ({time.monotonic() - begin:.0f} s{lost})")


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
