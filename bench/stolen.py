"""What the host takes of the processors: a virtual machine shares them with others.

They come and go within minutes, unseen but for the time that is stolen, and a broker with many
threads loses more by it than one with few. So a run that too much was taken of is made again, on
either side; if none is better, the one counts that least was taken of.
"""

import time
from pathlib import Path

#: How much of the time in which something was to be done may be taken.
STOLEN_MAX = 0.05
ATTEMPTS_MAX = 2
#: In which the others may become quiet.
REST_SECONDS = 2
#: The name under which the share stands beside the numbers of a round.
STOLEN = "stolen"
#: Where the times that nothing was to be done in, and the stolen time, stand in the system's line.
IDLE, WAITING, STEAL, FIELDS = 3, 4, 7, 8


def processor_times(path="/proc/stat"):
    """Ticks in which the processors were stolen, and in which they were wanted; None if untold."""
    try:
        name, *fields = Path(path).read_text().splitlines()[0].split()
    except OSError:
        return None
    if name != "cpu" or len(fields) < FIELDS:
        return None
    times = [int(each) for each in fields[:FIELDS]]
    return times[STEAL], sum(times) - times[IDLE] - times[WAITING]


def share(before, after):
    """How much of what was wanted was taken between the two; 0 where nobody can tell."""
    if before is None or after is None:
        return 0.0
    stolen, wanted = (late - early for early, late in zip(before, after, strict=True))
    return stolen / wanted if wanted else 0.0


def least_stolen(run, repeats, rest=time.sleep, times=processor_times):
    """Run until little was taken; the numbers of the best run, and the share with them."""
    best = None
    for attempt in range(ATTEMPTS_MAX if repeats else 1):
        if attempt:
            rest(REST_SECONDS)
        before = times()
        numbers = run()
        found = {**numbers, STOLEN: share(before, times())}
        if best is None or found[STOLEN] < best[STOLEN]:
            best = found
        if best[STOLEN] <= STOLEN_MAX:
            break
    return best
