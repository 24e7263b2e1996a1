"""Answers that are far larger than their requests are made one after the other for a client."""

from itertools import groupby

from strom.broker.api import describe_configs

BROKER = 4
PIPELINED = 5
MANY_RESOURCES = {
    "resources": [{"resource_type": BROKER, "resource_name": "1", "configuration_keys": None}]
    * (describe_configs.RESOURCES_AT_ONCE * 3)
}


def noted(result, notes):
    """The function, which also notes for which request it was called."""

    def call(wanted, request, context, **more):
        # The request itself: the id of one that is gone may be the next one's.
        notes.append(request)
        return result(wanted, request, context, **more)

    return call


def test_answers_of_one_client_are_not_made_all_at_once(raw, monkeypatch):
    notes = []
    monkeypatch.setattr(describe_configs, "result", noted(describe_configs.result, notes))
    frames = [raw.encode("describe_configs", 4, MANY_RESOURCES) for _ in range(PIPELINED)]
    raw.send_bytes(b"".join(frames))
    for _ in frames:
        raw.receive("describe_configs", 4)
    assert len(notes) == PIPELINED * len(MANY_RESOURCES["resources"])
    assert len(list(groupby(notes, key=id))) == PIPELINED
