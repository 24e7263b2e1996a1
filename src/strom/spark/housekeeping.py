"""What a Python worker of Spark does between two tasks.

Spark collects garbage after every task, which goes over all that the modules hold: tens of
milliseconds. What is there after the second task stays for good, so it is taken out of that.
"""

import gc
from collections import Counter

_tasks: Counter[str] = Counter()


def end_task(kind: str = "records") -> None:
    """Call at the end of each task; one of another kind has loaded other modules."""
    _tasks[kind] += 1
    if _tasks[kind] == 2:
        gc.collect()
        gc.freeze()
