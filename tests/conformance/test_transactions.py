"""Transactions over the wire: who may begin, write and end one, and what everybody else hears.

Each case is played to Strom and to Apache Kafka, whose answers are in `answers/transactions.json`.
Rows: TXN-05, TXN-08, TXN-09, TXN-10, TXN-11, TXN-12; KIP-360, KIP-588, KIP-890.
"""

import pytest

from tests.conformance.transacting import (
    ABORT,
    COMMIT,
    END_V1,
    END_V2,
    PRODUCE_V1,
    READ_UNCOMMITTED,
    TIMEOUT_MS,
    Tx,
)
from tests.conformance.transcript import check, is_peer, play


def a_newcomer_gets_a_higher_epoch(talk):
    tx = Tx(talk)
    for _ in range(3):
        tx.init()
    first = tx.id
    tx.init(version=0)
    talk.lines.append({"same id": first == tx.id})


def a_producer_may_say_which_epoch_it_has(talk):
    tx = Tx(talk)
    tx.init()
    own = {"producer_id": tx.id, "producer_epoch": tx.epoch}
    tx.init(**own)
    # Asked again, as if the answer had been lost.
    tx.init(**own)
    # The next one makes the first one a zombie.
    tx.init()
    for version in (3, 4, 5):
        tx.init(version, **own)
    tx.init(producer_id=tx.id + 100_000, producer_epoch=0)
    tx.init(producer_id=tx.id, producer_epoch=tx.epoch + 1)
    tx.init(producer_id=tx.id, producer_epoch=tx.epoch)


def an_unknown_id_may_claim_a_producer(talk):
    tx = Tx(talk)
    tx.init(producer_id=4711, producer_epoch=8)
    talk.lines.append({"its own": tx.id == 4711})


def what_init_is_asked_with_is_checked(talk):
    tx = Tx(talk)
    for timeout in (0, -1, 900_001):
        tx.init(transaction_timeout=timeout)
    tx.init(transaction_timeout=900_000)
    tx.init(producer_id=5)
    tx.init(producer_epoch=5)
    tx.init(transactional_id="")


def what_is_open_is_aborted_for_a_newcomer(talk):
    talk.create()
    tx = Tx(talk)
    tx.init()
    tx.add(0)
    tx.write("a", version=PRODUCE_V1)
    tx.described()
    tx.init()
    tx.begin()
    tx.described()
    tx.read()
    tx.read(READ_UNCOMMITTED)
    tx.producers()


def one_that_claims_the_newest_epoch_aborts_its_own(talk):
    talk.create()
    tx = Tx(talk)
    tx.init()
    tx.add(0)
    own = {"producer_id": tx.id, "producer_epoch": tx.epoch}
    tx.init(**own)
    asked = {"transactional_id": tx.name, "transaction_timeout": TIMEOUT_MS, **own}
    tx.until("init_producer_id", 5, asked)
    tx.described()


def what_one_hears_that_is_fenced(talk):
    talk.create()
    for number, version in enumerate((END_V2, END_V1)):
        tx = Tx(talk, f"-tx{number}")
        tx.init()
        tx.add(0)
        tx.init()
        tx.described()
        tx.add(0)
        tx.write("b", version=PRODUCE_V1)
        tx.end(COMMIT, version)
        tx.end(ABORT, version)
        tx.begin()
        tx.end(ABORT, version, producer_epoch=0)


def a_transaction_of_version_2(talk):
    talk.create(partitions=2)
    tx = Tx(talk)
    tx.init()
    tx.write("a", "b")
    tx.write("c")
    tx.write("d", partition=1)
    tx.described()
    tx.read()
    tx.read(READ_UNCOMMITTED)
    tx.end(COMMIT)
    tx.described()
    tx.read()
    tx.read(partition=1)
    tx.write("e")
    tx.end(ABORT)
    tx.described()
    tx.read()
    tx.read(offset=4)
    tx.producers()
    tx.producers(partition=1)


def a_transaction_of_version_1(talk):
    talk.create(partitions=2)
    tx = Tx(talk)
    tx.init(version=4)
    tx.add(0, 1)
    tx.described()
    tx.write("a", "b", version=PRODUCE_V1)
    tx.write("c", version=PRODUCE_V1, partition=1)
    tx.end(COMMIT, version=END_V1)
    tx.described()
    tx.read()
    tx.add(0)
    tx.write("d", version=PRODUCE_V1)
    tx.end(ABORT, version=END_V1)
    tx.described()
    tx.read()
    tx.producers()


def how_version_1_ends(talk):
    talk.create()
    for version in range(5):
        tx = Tx(talk, f"-tx{version}")
        tx.init(version=4)
        tx.end(COMMIT, version)
        tx.end(ABORT, version)
        tx.add(0)
        tx.end(COMMIT, version, producer_epoch=tx.epoch + 1)
        tx.end(COMMIT, version, producer_epoch=-1)
        tx.end(COMMIT, version, producer_id=tx.id + 100_000)
        tx.end(COMMIT, version)
        tx.described()
        tx.end(COMMIT, version)
        tx.end(ABORT, version)
        tx.add(0)
        tx.end(ABORT, version)
        tx.described()
        tx.end(ABORT, version)
        tx.end(COMMIT, version)


def how_version_2_ends(talk):
    talk.create()
    tx = Tx(talk)
    tx.init()
    tx.end(COMMIT)
    tx.end(ABORT, producer_epoch=-1)
    # Nothing was begun, but who knows: an abort is taken.
    tx.end(ABORT)
    tx.described()
    tx.write("a")
    before = tx.epoch
    tx.end(COMMIT, producer_epoch=before + 1)
    tx.end(COMMIT, producer_epoch=before - 1)
    tx.end(COMMIT, producer_id=tx.id + 100_000)
    tx.end(COMMIT)
    tx.described()
    # The first answer was lost: asked again, the outcome is told once more, and not another one.
    again = {"producer_epoch": before}
    talk.ask("end_txn", END_V2, tx.who(**again) | {"committed": COMMIT})
    talk.ask("end_txn", END_V2, tx.who(**again) | {"committed": ABORT})
    tx.end(COMMIT)
    tx.end(ABORT)
    tx.described()
    talk.ask("end_txn", END_V2, tx.who(producer_epoch=tx.epoch - 1) | {"committed": ABORT})
    talk.ask("end_txn", END_V2, tx.who(producer_epoch=tx.epoch - 1) | {"committed": COMMIT})


def an_end_that_comes_late_touches_no_later_transaction(talk):
    talk.create()
    tx = Tx(talk)
    tx.init()
    tx.write("a")
    late = tx.who()
    tx.end(COMMIT)
    tx.write("b")
    for committed in (COMMIT, ABORT):
        talk.ask("end_txn", END_V2, late | {"committed": committed})
    tx.described()
    tx.read()
    tx.end(ABORT)
    tx.described()
    for committed in (COMMIT, ABORT):
        talk.ask("end_txn", END_V2, late | {"committed": committed})
    tx.read()


def who_is_not_the_producer_ends_nothing(talk):
    tx = Tx(talk)
    for version in range(6):
        asked = tx.who(producer_id=5, producer_epoch=0) | {"committed": COMMIT}
        talk.ask("end_txn", version, asked)
    talk.ask("end_txn", 5, {"transactional_id": "", "producer_id": 5, "producer_epoch": 0})


def what_is_added_is_checked(talk):
    talk.create(partitions=2)
    tx = Tx(talk)
    tx.init()
    for version in range(4):
        tx.add(0, 7, version=version)
        tx.add(0, version=version, suffix="-unknown")
        tx.add(0, version=version, producer_epoch=tx.epoch + 1)
        tx.add(0, version=version, producer_id=tx.id + 100_000)
        tx.add(0, version=version, transactional_id=talk.topic("-nobody"))
    tx.described()
    asked = {f"v3_and_below_{key}": value for key, value in tx.who().items()}
    for name in ("__consumer_offsets", "__transaction_state"):
        topics = [{"name": name, "partitions": [0]}, {"name": talk.topic(), "partitions": [0]}]
        talk.ask("add_partitions_to_txn", 3, asked | {"v3_and_below_topics": topics})
    tx.add(0)
    tx.add(0)
    tx.add(0, 1)
    tx.described()
    tx.end(ABORT, END_V1)


def brokers_add_and_verify_many_at_once(talk):
    talk.create(partitions=2)
    one, other = Tx(talk, "-one"), Tx(talk, "-other")
    one.init()
    other.init()
    topics = [{"name": talk.topic(), "partitions": [0]}]
    both = [{"name": talk.topic(), "partitions": [0, 1]}]
    unknown = [{"name": talk.topic("-unknown"), "partitions": [0]}]
    for version in (4, 5):
        for transactions in (
            [one.who(topics=topics, verify_only=True)],
            [one.who(topics=topics), other.who(topics=both)],
            [one.who(topics=both, verify_only=True), other.who(topics=both, verify_only=True)],
            [one.who(topics=unknown), other.who(topics=topics, producer_epoch=7)],
            [one.who(topics=topics, transactional_id=talk.topic("-nobody"), verify_only=True)],
            [one.who(topics=topics, producer_id=5, verify_only=True)],
            [one.who(topics=topics, producer_epoch=7, verify_only=True)],
        ):
            one.until(
                "add_partitions_to_txn", version, {"transactions": transactions}, by_transaction
            )
    one.described()
    one.end(COMMIT)
    other.end(COMMIT)


def by_transaction(answer):
    results = sorted(answer["results_by_transaction"], key=lambda each: each["transactional_id"])
    return answer | {"results_by_transaction": results}


def what_is_written_is_checked(talk):
    talk.create(partitions=3)
    tx = Tx(talk)
    tx.init()
    for version in (10, 11):
        tx.write("not added", version=version, partition=2)
        tx.write("another epoch", version=version, epoch=tx.epoch + 1)
        tx.write("another id", version=version, id=tx.id + 100_000)
        tx.write("unknown", version=version, transactional_id=talk.topic("-nobody"))
        tx.write("without a transactional id", version=version, transactional_id=None)
    tx.write("another epoch", epoch=tx.epoch + 1)
    tx.write("another id", id=tx.id + 100_000)
    tx.write("unknown", transactional_id=talk.topic("-nobody"))
    tx.write("without a transactional id", transactional_id=None)
    tx.write("too late a start", sequence=3)
    tx.write("a")
    tx.write("not of the transaction", attributes=0)
    tx.write("without a transactional id", transactional_id=None, partition=1)
    tx.described()
    tx.read(READ_UNCOMMITTED)
    tx.read(READ_UNCOMMITTED, partition=1)
    tx.end(ABORT)


def a_zombie_gets_nothing_in(talk):
    talk.create(partitions=2)
    tx = Tx(talk)
    tx.init()
    tx.write("a")
    zombie = {"epoch": tx.epoch, "sequence": 1}
    tx.init()
    tx.begin()
    for version in (10, 11, 12):
        tx.write("b", version=version, **zombie)
        tx.write("b", version=version, partition=1, **zombie)
    tx.write("c")
    for version in (10, 11, 12):
        tx.write("b", version=version, **zombie)
    tx.end(COMMIT)
    tx.described()
    tx.read()


def nothing_is_written_after_the_marker(talk):
    talk.create()
    tx = Tx(talk)
    tx.init()
    tx.write("a")
    late = {"epoch": tx.epoch, "sequence": 1}
    tx.end(COMMIT)
    tx.described()
    tx.read()
    for version in (10, 11, 12):
        tx.write("b", version=version, **late)
    tx.read()


def nothing_is_written_after_the_marker_of_version_1(talk):
    talk.create()
    tx = Tx(talk)
    tx.init()
    tx.add(0)
    tx.write("a", version=PRODUCE_V1)
    tx.end(COMMIT, END_V1)
    tx.described()
    for version in (10, 11):
        tx.write("b", version=version)
    tx.read()


def a_group_is_there_although_its_offsets_did_not_count(talk):
    talk.create()
    tx = Tx(talk).with_group()
    group, place = talk.topic("-group"), {"partition_index": 0}
    tx.init()
    tx.commit_offset(5)
    tx.end(ABORT)
    tx.described()
    tx.offset(stable=True)
    asked = {"group_id": group, "topics": [{"name": talk.topic(), "partitions": [place]}]}
    talk.ask("describe_groups", 6, {"groups": [group]})
    talk.ask("offset_delete", 0, asked)
    talk.ask("describe_groups", 6, {"groups": [group]})
    for _ in range(2):
        talk.ask("delete_groups", 2, {"groups_names": [group]})


CASES = [
    a_newcomer_gets_a_higher_epoch,
    a_producer_may_say_which_epoch_it_has,
    an_unknown_id_may_claim_a_producer,
    what_init_is_asked_with_is_checked,
    what_is_open_is_aborted_for_a_newcomer,
    one_that_claims_the_newest_epoch_aborts_its_own,
    what_one_hears_that_is_fenced,
    a_transaction_of_version_2,
    a_transaction_of_version_1,
    how_version_1_ends,
    how_version_2_ends,
    an_end_that_comes_late_touches_no_later_transaction,
    who_is_not_the_producer_ends_nothing,
    what_is_added_is_checked,
    brokers_add_and_verify_many_at_once,
    what_is_written_is_checked,
    a_zombie_gets_nothing_in,
    nothing_is_written_after_the_marker,
    nothing_is_written_after_the_marker_of_version_1,
    a_group_is_there_although_its_offsets_did_not_count,
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_answers_are_the_same_when_every_step_takes_its_time(patient, case, name):
    """Where each record must be on the disk first, nothing is decided and written at once."""
    check("transactions", case.__name__, play(case, patient.bootstrap, name), peer=False)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_answers_are_those_of_apache_kafka(either, case, name, request):
    check("transactions", case.__name__, play(case, either.bootstrap, name), peer=is_peer(request))
