"""What a Python worker of Spark does between two tasks.

Spark collects garbage after every task, which goes over all that the modules hold: tens of
milliseconds. What is there after the second task stays for good, so it is taken out of that.
"""

import gc
import itertools

_tasks = itertools.count(1)


def end_task() -> None:
    """Call at the end of each task."""
    if next(_tasks) == 2:
        gc.collect()
        gc.freeze()
