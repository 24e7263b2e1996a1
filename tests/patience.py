"""How a test waits for what happens by itself: until it is so, a minute at the most."""

import asyncio
import threading
import time

PATIENCE_SECONDS = 60
POLL_SECONDS = 0.01


def until(look, holds=bool, *, told=None, seconds=PATIENCE_SECONDS):
    """Look until what is found is what is wanted; return that. A failure tells what was found."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not holds(found := look()):
        assert time.monotonic() < deadline, found if told is None else told()
        pause.wait(POLL_SECONDS)
    return found


def is_done(answer):
    return answer["error_code"] == "none"


def until_coordinated(raw, key, kind=0):
    """Wait until the cluster has a coordinator of the key; who asks has its topic made."""
    asked = {"key_type": kind, "coordinator_keys": [key]}
    until(lambda: raw.ask("find_coordinator", 4, asked)["coordinators"][0], is_done)


async def until_true(condition):
    """Let the loop come round until it holds."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not condition():  # noqa: ASYNC110 - it is the system that is waited for
            await asyncio.sleep(0)
