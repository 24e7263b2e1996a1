"""Large decisions: worked out in a thread, made on the loop if nothing was decided meanwhile."""

import asyncio
import threading
from datetime import timedelta
from types import SimpleNamespace

import pytest

from strom.broker.deciding import ATTEMPTS_MAX, decide_in_turns
from strom.metadata.controller import Controller
from strom.metadata.image import Image
from strom.metadata.records import NoOp, ProducerIds
from strom.replicated.machine import Decision
from strom.replicated.runtime import Runtime
from strom.wire.errors import ErrorCode, KafkaError

TIME = timedelta(seconds=30)


def ids(number):
    return ProducerIds(broker_id=1, broker_epoch=1, next_producer_id=number)


class Quorum:
    """A log that has committed what it takes; it tells how."""

    def __init__(self):
        self.told = []
        self.end_offset = 0
        self.is_leader = True

    def append(self, records):
        self.told.append(("append", tuple(records)))

    def append_written(self, records, batch):
        if not self.is_leader:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        assert isinstance(batch, bytearray)
        self.told.append(("written", tuple(records)))

    async def wait_committed(self, end_offset):
        self.told.append("committed")


class Scene:
    """A controller, and threads between whose work something else may be decided."""

    def __init__(self):
        self.controller = Controller(Image(), cluster_id="c", node_id=1, rules=None)
        self.quorum = Quorum()
        self.meanwhile = []
        self.threads = []
        self.parts = SimpleNamespace(
            controller=self.controller,
            quorum=self.quorum,
            runtime=Runtime(self.controller, self.quorum),
            publisher=SimpleNamespace(wait_published=self.nothing),
            host=SimpleNamespace(offload=self.offload, now_ms=lambda: 1000),
        )

    async def nothing(self):
        pass

    async def offload(self, work):
        done = await asyncio.to_thread(work)
        if self.meanwhile:
            self.controller.apply(self.meanwhile.pop())
        return done

    def decide(self, controller, portion):
        """Raise the next producer id by one; the reply is what it was."""
        self.threads.append(threading.current_thread() is threading.main_thread())
        before = controller.image.next_producer_id
        return Decision((NoOp(), ids(before + len(portion))), before)

    def run(self, *portions, is_large=lambda _: True):
        return asyncio.run(decide_in_turns(self.parts, TIME, portions, self.decide, is_large))


def test_a_large_decision_is_worked_out_in_a_thread_and_then_made():
    scene = Scene()
    assert scene.run("abc", "de") == [0, 3]
    assert scene.controller.image.next_producer_id == 5
    assert scene.threads == [False, False]
    assert scene.quorum.told == [
        ("written", (NoOp(), ids(3))),
        ("written", (NoOp(), ids(5))),
        "committed",
    ]


def test_what_was_worked_out_in_vain_is_worked_out_again():
    scene = Scene()
    scene.meanwhile = [ids(100)]
    assert scene.run("abc") == [100]
    assert scene.controller.image.next_producer_id == 103
    assert scene.quorum.told == [("written", (NoOp(), ids(103))), "committed"]


def test_who_is_always_too_late_is_decided_on_at_once():
    scene = Scene()
    scene.meanwhile = [ids(100 * number) for number in range(ATTEMPTS_MAX, 0, -1)]
    assert scene.run("abc") == [100 * ATTEMPTS_MAX]
    assert scene.threads == [False] * ATTEMPTS_MAX + [True]
    assert scene.controller.image.next_producer_id == 100 * ATTEMPTS_MAX + 3
    assert scene.quorum.told[0][0] == "append"


def test_a_small_decision_is_made_at_once():
    scene = Scene()
    assert scene.run("abc", is_large=lambda _: False) == [0]
    assert scene.threads == [True]


def test_a_large_decision_to_change_nothing_is_answered():
    scene = Scene()
    scene.decide = lambda controller, portion: Decision((), "refused")
    assert scene.run("abc") == ["refused"]
    assert scene.quorum.told == ["committed"]


def test_what_cannot_be_written_is_not_state():
    scene = Scene()
    scene.quorum.is_leader = False
    with pytest.raises(KafkaError):
        scene.run("abc")
    assert scene.controller.image == Image()
