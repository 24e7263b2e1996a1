"""Frames with something wrong in them: whatever comes, the broker serves everybody else.

A fixed count from a fixed seed here; `make soak` goes on with seeds of its own.
"""

import os
import random
import time

import pytest

from tests.conformance.batches import batch
from tests.conformance.raw import Raw
from tests.conformance.test_versions import SERVED, Asked

SEED = int(os.environ.get("STROM_FUZZ_SEED", "4711"))
FRAMES = 400
SOAK_SECONDS = float(os.environ.get("STROM_SOAK_SECONDS", "0"))
CHECK_EVERY = 50
#: Left out: they change the broker itself, and a lucky flip would end the run for all others.
HARMLESS = sorted(set(SERVED) - {"unregister_broker", "update_features", "alter_replica_log_dirs"})


def flip(dice, frame):
    """Turn a few bits anywhere behind the length."""
    for _ in range(dice.randint(1, 8)):
        frame[dice.randrange(4, len(frame))] ^= 1 << dice.randrange(8)


def cut(dice, frame):
    """Drop the end; the length says nothing of it."""
    del frame[dice.randrange(4, len(frame)) :]


def shorten(dice, frame):
    """Drop the end, with a length that is right."""
    cut(dice, frame)
    frame[:4] = (len(frame) - 4).to_bytes(4, "big")


def lie(dice, frame):
    """Say another length."""
    frame[:4] = dice.choice([0, 1, 7, len(frame) * 2, 2**31 - 1, 2**32 - 1]).to_bytes(4, "big")


def splice(dice, frame):
    """Put extreme numbers where something else was."""
    extreme = dice.choice([b"\xff" * 4, b"\x7f" + b"\xff" * 3, b"\x80" + bytes(3), bytes(8)])
    at = dice.randrange(4, len(frame))
    frame[at : at + len(extreme)] = extreme
    frame[:4] = (len(frame) - 4).to_bytes(4, "big")


def noise(dice, frame):
    """Any bytes, behind a right length."""
    frame[4:] = dice.randbytes(len(frame) - 4)


DAMAGES = (flip, flip, flip, cut, shorten, lie, splice, splice, noise)


def damaged(dice, raw, topic):
    """A request with something wrong in it."""
    api = dice.choice(HARMLESS)
    version = dice.choice(SERVED[api][1])
    requests = getattr(Asked(topic, None, version), api)()
    values = requests[0] if isinstance(requests, list) else requests
    frame = bytearray(raw.encode(api, version, values))
    dice.choice(DAMAGES)(dice, frame)
    return bytes(frame)


def send_one(dice, bootstrap, topic):
    """Send it on a connection of its own; an answer, a hang-up and patience are all right."""
    with Raw(bootstrap) as raw:
        raw.send_bytes(damaged(dice, raw, topic))
        raw.socket.settimeout(0.05)
        try:
            raw.read_frame()
        except TimeoutError:
            return


def check_health(raw, topic, story):
    """The broker appends and reads, and what it says of the log is right."""
    data = {"index": 1, "records": batch([b"alive"])}
    topics = [{"name": topic, "partition_data": [data]}]
    answer = raw.ask("produce", 9, {"acks": -1, "timeout": 5000, "topic_data": topics})
    (partition,) = answer["responses"][0]["partition_responses"]
    assert partition["error_code"] == "none", story


@pytest.mark.soak
@pytest.mark.slow
def test_damaged_frames_disturb_nobody(strom, make_topic):
    topic = make_topic(partitions=2)
    seed = time.time_ns() if SOAK_SECONDS else SEED
    dice = random.Random(seed)
    end = time.monotonic() + SOAK_SECONDS
    sent = 0
    with Raw(strom.bootstrap) as healthy:
        while sent < FRAMES or time.monotonic() < end:
            send_one(dice, strom.bootstrap, topic)
            sent += 1
            if sent % CHECK_EVERY == 0:
                check_health(healthy, topic, f"seed {seed}, after {sent} frames")
