"""How long the test kit's broker takes until it serves, in a process that has just begun."""

import sys
import time

from strom.testing.broker import LocalBroker

begin = time.perf_counter()
with LocalBroker():
    sys.stdout.write(f"{time.perf_counter() - begin}\n")
