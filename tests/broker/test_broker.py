"""A whole broker: what it loads, what goes wrong in it, and how it stops."""

import socket
import subprocess
import sys
import threading

import pytest

from strom.broker.startup import StartupError
from strom.testing.broker import LocalBroker
from tests.broker.api.conftest import create
from tests.conformance.batches import batch
from tests.conformance.raw import Raw
from tests.patience import PATIENCE_SECONDS

#: Longer than anybody waits for an answer.
LONG_MS = 600_000


def do(local, work):
    """Do something on the broker's loop, and have its result."""
    done, results = threading.Event(), []

    def call():
        results.append(work())
        done.set()

    local._loop.call_soon_threadsafe(call)
    assert done.wait(PATIENCE_SECONDS)
    return results[0]


async def failing():
    raise LookupError("a fault")


def test_a_fault_in_a_task_does_not_end_the_broker(caplog):
    with LocalBroker() as local, Raw(local.bootstrap) as raw:
        do(local, lambda: local.broker.start_task(failing()))
        assert raw.ask("api_versions", 3, {})["error_code"]
        do(local, lambda: None)
        assert raw.ask("metadata", 12, {"topics": []})["brokers"]
    assert "a fault" in caplog.text


def produce(raw):
    data = {"index": 0, "records": bytes(batch([b"v"]))}
    topics = [{"name": "t", "partition_data": [data]}]
    return raw.encode("produce", 9, {"acks": -1, "timeout": LONG_MS, "topic_data": topics})


def end_offset(raw):
    asked = {
        "replica_id": -1,
        "topics": [{"name": "t", "partitions": [{"partition_index": 0, "timestamp": -1}]}],
    }
    (topic,) = raw.ask("list_offsets", 7, asked)["topics"]
    return topic["partitions"][0]["offset"]


def fetch(raw):
    place = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    asked = {
        "replica_id": -1,
        "max_wait": LONG_MS,
        "min_bytes": 1 << 20,
        "max_bytes": 1 << 20,
        "topics": [{"topic": "t", "partitions": [place]}],
    }
    return raw.encode("fetch", 12, asked)


def test_a_stop_answers_who_waits_for_data():
    with LocalBroker() as local, Raw(local.bootstrap) as raw:
        create(raw, "t", partitions=1)
        raw.send_bytes(fetch(raw))
        # Behind it, so that the broker has surely taken both when it is told to stop.
        with Raw(local.bootstrap) as other:
            wait_for_watcher(local, other)
        local.stop()
        assert raw.read_frame() is not None
        assert raw.closed()


def wait_for_watcher(local, other):
    partitions = local.broker.parts.replicas.partitions
    while not do(local, lambda: any(each.watchers() for each in partitions())):
        other.ask("metadata", 12, {"topics": []})


@pytest.mark.slow
def test_a_stop_under_load_answers_all_that_was_appended(tmp_path):
    """Flushing each batch makes the answers come late: many are under way when it is time."""
    with LocalBroker(directory=tmp_path) as local, Raw(local.bootstrap) as raw:
        create(raw, "t", partitions=1, flush_messages=1)
        frame = produce(raw)
        is_over = threading.Event()

        def send():
            try:
                while not is_over.is_set():
                    raw.send_bytes(frame)
            except OSError:
                pass

        sender = threading.Thread(target=send)
        sender.start()
        answered = [raw.read_frame() for _ in range(20)]
        local._loop.call_soon_threadsafe(local.broker.stop)
        while (frame_read := raw.read_frame()) is not None:
            answered.append(frame_read)
        is_over.set()
        sender.join()
    with LocalBroker(directory=tmp_path) as local, Raw(local.bootstrap) as raw:
        assert end_offset(raw) == len(answered)


def test_a_port_in_use_is_one_line_and_touches_nothing():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        local = LocalBroker({"listeners": f"PLAINTEXT://127.0.0.1:{port}"})
        try:
            with pytest.raises(StartupError, match="cannot listen at") as raised:
                local.start()
            assert list(local.directory.iterdir()) == []
        finally:
            local.remove()
    assert "\n" not in str(raised.value)


def test_a_host_that_is_not_found_is_one_line_and_touches_nothing():
    """No name has an empty part, so no name server has to be asked."""
    local = LocalBroker({"max.connections.per.ip.overrides": "a..b:5"})
    try:
        with pytest.raises(StartupError, match=r"cannot find a\.\.b, which max.connections"):
            local.start()
        assert list(local.directory.iterdir()) == []
    finally:
        local.remove()


LOADED = """
import sys
from strom.testing.broker import LocalBroker
from tests.conformance.raw import Raw

def apis():
    found = [name.split(".") for name in sys.modules if name.startswith("kio.schema.")]
    return sorted({each[2] for each in found if each[-1] in ("request", "response")})

with LocalBroker() as local, Raw(local.bootstrap) as raw:
    print(*apis())
    raw.ask("describe_cluster", 1, {})
    print(*apis())
"""


@pytest.mark.slow
def test_classes_of_the_protocol_load_with_the_first_request_that_needs_them():
    """There are hundreds of them; all would take longer than the start."""
    found = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True
    )
    assert found.stdout == "\ndescribe_cluster\n"
