"""`make bench`: measure both brokers in turn and write docs/benchmarks.md.

python -m bench --list
python -m bench --rounds 3
python -m bench --cases 'throughput: 1 KB' --rounds 1 --quick
python -m bench --cases groups --add
"""

import argparse
import fcntl
import itertools
import re
import sys
import time
from contextlib import contextmanager

from bench import report
from bench.cases import CASES, SELF_STARTED, SETTINGS, Effort, warm_up
from bench.results import Results
from bench.sides import BUILD, SIDES, Strom, versions

LET_IN_SECONDS = 0.2
QUICK = Effort(
    seconds=1,
    latency_seconds=2,
    warm_seconds=1,
    partitions_many=1000,
    repetitions=1,
    compacted_mb=20,
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
    effort = QUICK if options.quick else Effort()
    results = Results(BUILD / "bench.json")
    if options.add:
        results.read()
    told = versions()
    for case in chosen:
        results.begin(case, SIDES, told["Strom"])
    for number in range(options.rounds):
        for group, cases in itertools.groupby(chosen, key=lambda case: case.group):
            say(f"round {number + 1}/{options.rounds}, {group}")
            # Whoever goes first finds the machine as the other left it; take turns at that.
            turns = SIDES if number % 2 == 0 else SIDES[::-1]
            sides = [make(SETTINGS.get(group, {})) for make in turns]
            run_group(sides, group, list(cases), effort, results, options.lock)
        # After each round, so that a run that is cut off has something to show.
        results.write()
        rows = report.write(results, told)
    for row in rows:
        say(row.line())


def read_options():
    parser = argparse.ArgumentParser(prog="bench", description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cases", default="", help="regular expression over 'group: name'")
    parser.add_argument("--quick", action="store_true", help="short loads, to try the bench")
    parser.add_argument("--add", action="store_true", help="keep the other cases of earlier runs")
    parser.add_argument("--list", action="store_true", help="name the cases and stop")
    parser.add_argument("--lock", help="a file to lock around each case, as other heavy work does")
    return parser.parse_args()


def run_group(sides, group, cases, effort, results, lock):
    """Run the cases of one group against fresh brokers, in turn: one works, the other idles.

    The machine changes over minutes (its page cache, its host), so the two runs of a case are
    next to each other.
    """
    try:
        if group not in SELF_STARTED:
            for side in sides:
                with alone(lock):
                    side.start()
                    warm_up(side, effort)
        for case in cases:
            with alone(lock):
                for side in sides:
                    run_case(case, side, effort, results)
    finally:
        for side in sides:
            side.remove()


def run_case(case, side, effort, results):
    begin = time.monotonic()
    numbers = case.run(side, effort)
    results.add(case, side, numbers)
    told = ", ".join(f"{name} {report.short(value)}" for name, value in numbers.items())
    say(f"  {case.name}: {side.name} {told}  ({time.monotonic() - begin:.0f} s)")


@contextmanager
def alone(lock):
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
