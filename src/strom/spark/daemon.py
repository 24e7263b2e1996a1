"""What Spark's Python workers are forked from, with what they need loaded already.

    spark.python.daemon.module=strom.spark.daemon

A worker of Spark's own daemon has nothing loaded when it is forked. So each of them begins by
loading PySpark's half, Arrow, pandas and Strom: a second of a processor, while the first query
waits. A task that reads and writes has two workers.

Spark loads nothing before a fork because the libraries may start threads, which a fork does not
have. So they are kept from it, and where there is a thread nevertheless, Spark's own takes over.
The other thing that a fork would do is to give all workers the same random numbers from numpy.
"""

import gc
import os
import sys
from importlib import import_module
from pathlib import Path

from pyspark import daemon

#: Spark has daemons for other work too, which need none of this.
WORKER = "pyspark.worker"
#: pandas is what Arrow loads when Spark makes an array of what a writer returns.
MODULES = (
    WORKER,
    "pandas",
    "pyarrow.pandas_compat",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.write_into_data_source",
    "strom.spark.arrow",
    "strom.spark.fetching",
    "strom.spark.reader",
    "strom.spark.writer",
    "strom.spark.writing",
)
#: Arrow brings an allocator that would have a thread; by default another one is used.
ALLOCATOR = "JE_ARROW_MALLOC_CONF"


def load() -> bool:
    """Load what workers need; whether they can be forked then."""
    before = os.environ.get(ALLOCATOR)
    os.environ.setdefault(ALLOCATOR, "background_thread:false")
    gc.disable()
    try:
        for name in MODULES:
            import_module(name)
    except Exception:  # noqa: BLE001 - a worker that needs it says what is wrong with it
        return False
    finally:
        gc.enable()
        if before is None:
            del os.environ[ALLOCATOR]
    os.register_at_fork(after_in_child=_be_random)
    # No worker looks at it again when it collects its garbage, so that they share it.
    gc.freeze()
    return len(list(Path("/proc/self/task").iterdir())) == 1


def _be_random() -> None:
    """Have each worker draw numbers of its own, as if it had loaded numpy itself."""
    import numpy as np

    np.random.seed()


def main() -> None:
    """Be the daemon that Spark has started."""
    if sys.argv[1:2] == [WORKER] and sys.platform == "linux" and not load():
        os.execv(sys.executable, [sys.executable, "-m", daemon.__name__, *sys.argv[1:]])
    daemon.manager()


if __name__ == "__main__":
    main()
