"""What the host takes of the processors: a virtual machine shares them with others.

They come and go within minutes, unseen but for the time that is stolen, and two runs in turn do not
lose the same by it. So a run begins when the host is quiet, as far as that can be waited for; and
one that too much was taken of is made once more, on either side. The one counts that less was taken
of.
"""

import threading
import time
import zlib
from pathlib import Path

#: How much of the time in which something was to be done may be taken.
STOLEN_MAX = 0.05
ATTEMPTS_MAX = 2
#: How long a look takes, for which the processors are kept busy, and how long the next one waits.
LOOK_SECONDS = 0.3
REST_SECONDS = 3
#: How long all runs together wait for quiet.
PATIENCE_SECONDS = 1800
LOOKED_THROUGH = bytes(1 << 20)
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


def keep_busy(seconds=LOOK_SECONDS):
    """Want two processors for a while: only what is wanted can be taken."""

    def work():
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            # Not under the interpreter's lock.
            zlib.crc32(LOOKED_THROUGH)

    workers = [threading.Thread(target=work) for _ in range(2)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()


class Quiet:
    """Waits until the host leaves the processors alone, while its patience lasts."""

    def __init__(self, look=keep_busy, rest=time.sleep, times=processor_times):
        self._look, self._rest, self._times = look, rest, times
        self._left_seconds = PATIENCE_SECONDS

    def wait(self):
        """Return when it is quiet, or nobody has the patience any more."""
        while self._left_seconds > 0:
            before = self._times()
            self._look()
            if share(before, self._times()) <= STOLEN_MAX:
                return
            self._rest(REST_SECONDS)
            self._left_seconds -= REST_SECONDS + LOOK_SECONDS

    def run(self, work, repeats):
        """Run until little was taken; the numbers of the best run, and the share with them."""
        best = None
        for _ in range(ATTEMPTS_MAX if repeats else 1):
            self.wait()
            before = self._times()
            numbers = work()
            found = {**numbers, STOLEN: share(before, self._times())}
            if best is None or found[STOLEN] < best[STOLEN]:
                best = found
            if best[STOLEN] <= STOLEN_MAX:
                break
        return best


QUIET = Quiet()
