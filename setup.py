"""What pyproject.toml cannot say: what is compiled.

- CYTHON, by Cython: the walk over the records of a batch, records as columns, columns as records,
  the blocks of lz4 frames, and what is in memory of a file. Without it `strom.records.walk`,
  `columns`, `packing`, `lz4_frame` and `strom.log.nowait` use those in Python.
- COMPILED, by mypyc: the modules that every request goes through, and those that decide about
  groups and transactions, as they are. Without that the same files run as Python. An editable
  install leaves them alone: who changes a module wants to run what is in the file.

All is `optional`: where there is no C compiler the install goes on without.
"""

import shutil
import sys

from mypyc.build import mypycify
from setuptools import Extension, setup

CYTHON = ("records/_walk", "records/_columns", "records/_packing", "records/_lz4", "log/_nowait")

COMPILED = (
    "wire/primitives",
    "wire/produce",
    "wire/fetch",
    "wire/list_offsets",
    "wire/offset_commit",
    "wire/offset_fetch",
    "wire/join_group",
    "wire/sync_group",
    "wire/heartbeat",
    "wire/add_partitions_to_txn",
    "wire/end_txn",
    "wire/consumer_group_heartbeat",
    "wire/codec",
    "wire/guard",
    "wire/writers",
    "wire/schema_writer",
    "records/batch",
    "records/lz4_frame",
    "records/compression",
    "records/expansion",
    "records/walk",
    "records/validate",
    "records/record",
    "records/keyed",
    "records/control_key",
    "records/marker",
    "log/nowait",
    "log/disk",
    "log/batches",
    "log/config",
    "log/index",
    "log/segment",
    "log/retention",
    "log/segmented",
    "log/appending",
    "log/log",
    "log/producers",
    "log/epochs",
    "metadata/settings/values",
    "replication/progress",
    "replication/waiting",
    "replication/partition",
    "groups/machine",
    "groups/members",
    "groups/member_records",
    "groups/committing",
    "groups/offsets",
    "groups/owners",
    "groups/consumer/member",
    "groups/consumer/limits",
    "groups/consumer/request",
    "groups/consumer/replies",
    "groups/consumer/subscription",
    "groups/consumer/topics",
    "groups/consumer/leaving",
    "groups/consumer/owner",
    "groups/consumer/assignors/subscriber",
    "groups/consumer/group",
    "groups/consumer/draft",
    "groups/consumer/gathering",
    "groups/consumer/heartbeat",
    "groups/consumer/membership",
    "groups/consumer/progress",
    "groups/consumer/reconcile",
    "groups/consumer/replay",
    "groups/consumer/rows",
    "groups/consumer/target",
    "groups/consumer/coordinator",
    "groups/consumer/assignors/uniform",
    "groups/classic/change",
    "groups/classic/group",
    "groups/classic/joining",
    "groups/classic/leaving",
    "groups/classic/logged",
    "groups/classic/presence",
    "groups/classic/rebalance",
    "groups/classic/replies",
    "groups/classic/syncing",
    "groups/classic/votes",
    "transactions/form",
    "transactions/transaction",
    "transactions/beginning",
    "transactions/ending",
    "transactions/machine",
    "broker/host",
    "broker/context",
    "broker/page_cache",
    "broker/sessions",
    "broker/alertness",
    "broker/outbox",
    "broker/link",
    "broker/connection",
    "broker/metrics",
    "broker/noted",
    "broker/placing",
    "broker/replicas",
    "broker/dispatch",
    "broker/flushing",
    "broker/preparing",
    "broker/turns",
    "broker/coordinating",
    "broker/group_protocols",
    "broker/pending",
    "broker/shard",
    "broker/coordinator_log",
    "broker/timers",
    "broker/transacting",
    "broker/first_batches",
    "broker/markers",
    "broker/api/produce",
    "broker/api/fetch",
    "broker/api/consumer_group_heartbeat",
    "broker/api/list_offsets",
    "broker/api/offset_fetch",
    "broker/api/join_group",
    "broker/api/sync_group",
    "broker/api/heartbeat",
    "broker/api/add_partitions_to_txn",
    "broker/api/end_txn",
)

#: `make check` is where types are checked; here they are taken from what is installed.
MYPY = ("--config-file=", "--follow-imports=silent", "--ignore-missing-imports")

# What an earlier build left there would go into this one's wheel, also modules that are gone.
shutil.rmtree("build", ignore_errors=True)


def compiled() -> list[Extension]:
    """Return what is to be built."""
    extensions = [
        Extension(f"strom.{name.replace('/', '.')}", [f"src/strom/{name}.pyx"]) for name in CYTHON
    ]
    if "bdist_wheel" in sys.argv:
        files = [f"src/strom/{name}.py" for name in COMPILED]
        # A file of C for each: in one file it takes the compiler twice as long.
        extensions += mypycify([*MYPY, *files], opt_level="2", debug_level="0", multi_file=True)
    for each in extensions:
        each.optional = True
    return extensions


setup(ext_modules=compiled())
