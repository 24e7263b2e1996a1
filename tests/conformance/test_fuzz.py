"""Frames with something wrong in them: whatever comes, the broker serves everybody else.

A fixed count from a fixed seed here; `make soak` goes on with seeds of its own.
"""

import dataclasses
import os
import random
import time
import typing
from uuid import UUID

import pytest

from tests.conformance.batches import batch
from tests.conformance.raw import Raw, bare, hints, schema
from tests.conformance.test_versions import SERVED, Asked

SEED = int(os.environ.get("STROM_FUZZ_SEED", "4711"))
FRAMES = 1000
SOAK_SECONDS = float(os.environ.get("STROM_SOAK_SECONDS", "0"))
CHECK_EVERY = 50
#: Left out: they change the broker itself, and a lucky flip would end the run for all others.
HARMLESS = sorted(set(SERVED) - {"unregister_broker", "update_features", "alter_replica_log_dirs"})
#: Of groups and of transactions, with the newest version of each.
COORDINATED = {
    "offset_commit": 10,
    "offset_fetch": 10,
    "join_group": 9,
    "heartbeat": 4,
    "leave_group": 5,
    "sync_group": 5,
    "describe_groups": 6,
    "list_groups": 5,
    "delete_groups": 2,
    "offset_delete": 0,
    "consumer_group_heartbeat": 1,
    "consumer_group_describe": 1,
    "add_partitions_to_txn": 5,
    "add_offsets_to_txn": 4,
    "end_txn": 5,
    "write_txn_markers": 2,
    "txn_offset_commit": 5,
    "describe_transactions": 0,
    "list_transactions": 2,
}


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


def some(hint, text):
    """A value of a field that has something in it, as it is given for a request."""
    kind = bare(hint)
    if typing.get_origin(kind) is tuple:
        return [some(typing.get_args(kind)[0], text)]
    if dataclasses.is_dataclass(kind):
        return {each.name: some(hints(kind)[each.name], text) for each in dataclasses.fields(kind)}
    if issubclass(kind, UUID):
        return UUID(int=1)
    if issubclass(kind, str | bytes):
        return text if issubclass(kind, str) else text.encode()
    return 1


def whole(dice, topic):
    """Any API and version, and a request of it that has nothing wrong in it."""
    api = dice.choice([*HARMLESS, *COORDINATED])
    if api in COORDINATED:
        version = COORDINATED[api]
        return api, version, some(schema(api, version, "request"), topic)
    version = dice.choice(SERVED[api][1])
    requests = getattr(Asked(topic, None, version), api)()
    return api, version, requests[0] if isinstance(requests, list) else requests


def damaged(dice, raw, topic):
    """A request with something wrong in it."""
    frame = bytearray(raw.encode(*whole(dice, topic)))
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
    """The broker appends, reads that back, and what it says of the log is right."""
    sent = batch([b"alive", story.encode()])
    topics = [{"name": topic, "partition_data": [{"index": 1, "records": sent}]}]
    answer = raw.ask("produce", 9, {"acks": -1, "timeout": 5000, "topic_data": topics})
    (appended,) = answer["responses"][0]["partition_responses"]
    assert appended["error_code"] == "none", story
    offset = appended["base_offset"]
    place = {"partition": 1, "fetch_offset": offset, "current_leader_epoch": -1}
    topics = [{"topic": topic, "partitions": [place | {"partition_max_bytes": 1 << 20}]}]
    asked = {"replica_id": -1, "max_wait": 0, "max_bytes": 1 << 20, "topics": topics}
    (found,) = raw.ask("fetch", 12, asked)["responses"][0]["partitions"]
    assert (found["error_code"], found["high_watermark"]) == ("none", offset + 2), story
    assert found["log_start_offset"] <= offset, story
    # Offset and leader epoch are the broker's; all behind them is the sender's.
    assert found["records"][:8] == offset.to_bytes(8, "big"), story
    assert found["records"][16:] == sent[16:], story


@pytest.mark.soak
@pytest.mark.slow
def test_damaged_frames_disturb_nobody(broker_process):
    process = broker_process()
    topic = "fuzz"
    seed = time.time_ns() if SOAK_SECONDS else SEED
    dice = random.Random(seed)
    end = time.monotonic() + SOAK_SECONDS
    sent = 0
    with Raw(process.bootstrap) as healthy:
        new = {"name": topic, "num_partitions": 2, "replication_factor": 1}
        healthy.ask("create_topics", 7, {"topics": [new], "timeout": 60_000})
        while sent < FRAMES or time.monotonic() < end:
            send_one(dice, process.bootstrap, topic)
            sent += 1
            if sent % CHECK_EVERY == 0:
                check_health(healthy, topic, f"seed {seed}, after {sent} frames")
    # A hang-up may also be a handler's fault, and only the log tells the two apart.
    assert "Traceback" not in process.log(), f"seed {seed}\n{process.log()}"
