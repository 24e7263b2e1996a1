"""What the host takes of the processors: a virtual machine shares them with others.

The others come and go within minutes, unseen but for the time that is stolen, and two runs in turn
do not lose the same by it. So the share that a run lost is noted beside its numbers.
"""

from pathlib import Path

#: The name under which the share stands beside the numbers of a run.
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
    """How much of what was wanted was stolen between the two; None if untold."""
    if before is None or after is None:
        return None
    stolen, wanted = (late - early for early, late in zip(before, after, strict=True))
    return stolen / wanted if wanted else 0.0
