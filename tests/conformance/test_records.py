"""What is wrong inside a sealed batch: every record is looked at, as Apache Kafka does.

Each batch has a right header and checksum around odd records. It is sent to Strom and to Apache
Kafka, whose answers are in `answers/records.json`: whether it is taken, and how it comes back.
Rows: MSG-16.
"""

import json

import pytest

from tests.conformance.batches import batch, headers
from tests.conformance.transcript import ANSWERS, check, is_peer, play
from tests.records.faults import BATCHES, OVERLOOKED, POISON

TAKEN = {"produce v12": {"error_code": "none", "records": []}}
REFUSED = {"produce v12": {"error_code": "invalid_record", "records": []}}
STUMBLED = {"produce v12": {"error_code": "unknown_server_error", "records": []}}


def send_and_fetch(talk, records):
    """Send a batch, look at it if it was taken, and send a good one."""
    talk.create()
    partition = {"index": 0, "records": records}
    topics = [{"name": talk.topic(), "partition_data": [partition]}]
    asked = {"acks": -1, "timeout": 10000, "topic_data": topics}
    talk.ask("produce", 12, asked, only=judgement)
    if talk.lines == [TAKEN]:
        wanted = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 24}
        fetched = [{"topic": talk.topic(), "partitions": [wanted]}]
        asked_back = {"replica_id": -1, "max_bytes": 1 << 24, "topics": fetched}
        talk.ask("fetch", 12, asked_back, only=appearance)
    partition["records"] = batch([b"good"])
    talk.ask("produce", 12, asked, only=judgement)


def judgement(answer):
    """Whether a batch was taken, without the words: Apache Kafka has none for most of these."""
    told = answer["responses"][0]["partition_responses"][0]
    named = [each["batch_index"] for each in told["record_errors"]]
    return {"error_code": told["error_code"], "records": named}


def appearance(answer):
    """A batch as readers see it."""
    found = answer["responses"][0]["partitions"][0]["records"]
    return [
        {"attributes": each.attributes, "newest": each.max_time, "count": each.count}
        for each in headers(found)
    ]


@pytest.mark.parametrize("label", BATCHES)
def test_records_are_judged_as_apache_kafka_does(either, request, name, label):
    peer = is_peer(request)
    lines = play(send_and_fetch, either.bootstrap, name, records=BATCHES[label])
    if not peer and is_judged_otherwise(label):
        assert lines == [REFUSED, TAKEN]
    else:
        check("records", label, lines, peer=peer)


def is_judged_otherwise(label):
    """Where Apache Kafka stumbles, or takes what cannot be read: INVALID_RECORD says what it is."""
    notes = json.loads((ANSWERS / "records.json").read_text())[label]
    assert label not in POISON | OVERLOOKED or notes[0] == TAKEN
    return label in POISON | OVERLOOKED or notes[0] == STUMBLED
