"""Producers that write, repeat, skip and end transactions in any order: what a log makes of it.

The model is a list of what was written and a few facts: which batches are a producer's last five,
which transaction each is of, and how that ended. From it follows what a batch is answered with,
what a reader of committed data sees, and that none of it changes by a restart or a roll.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from strom.log.cold import patiently
from strom.records.batch import read_header
from strom.records.control_key import ControlType
from strom.records.record import Producer, read_records
from strom.wire.errors import ErrorCode, KafkaError
from tests.effort import examples
from tests.log.making import (
    append,
    append_transactional,
    end_transaction,
    new_disk,
    open_log,
    read,
    reopen,
    whole_batches,
)

IDS = [1, 2, 3]
ids = st.sampled_from(IDS)
DATA, MARKER = "data", "marker"


class Entry:
    """One batch in the log, as the model has it."""

    def __init__(self, kind, producer_id, first, values=(), transaction=None):
        self.kind = kind
        self.producer_id = producer_id
        self.first = first
        self.values = values
        self.transaction = transaction

    @property
    def end(self):
        return self.first + max(len(self.values), 1)


class Told:
    """One producer, as the model has it."""

    def __init__(self):
        self.epoch = 0
        self.next_sequence = 0
        #: Sequence, values, flag and offset of the last five batches of this epoch.
        self.sent = []
        self.transaction = None
        self.has_written = False

    def raise_epoch(self, epoch):
        if epoch != self.epoch:
            self.epoch, self.next_sequence, self.sent = epoch, 0, []


class Writing(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.disk = new_disk()
        self.log = open_log(self.disk)
        self.entries = []
        self.producers = {each: Told() for each in IDS}
        self.outcomes = {}
        self.numbers = 0
        self.end = 0
        #: The high watermark: all before is committed.
        self.high = 0

    def attempt(self, call, *args, **kwargs):
        try:
            return call(self.log, *args, **kwargs)
        except KafkaError as error:
            assert self.log.end_offset == self.end, "a refused batch left a trace"
            return error.code

    def note(self, entry):
        self.entries.append(entry)
        self.end = entry.end

    def write(self, producer_id, epoch, sequence, values, transactional):
        call = append_transactional if transactional else append
        who = Producer(producer_id, epoch, sequence)
        if transactional:
            return self.attempt(call, who, *values)
        return self.attempt(call, *values, producer=who)

    @rule(producer_id=ids, count=st.integers(1, 3), transactional=st.booleans())
    def the_next_batch(self, producer_id, count, transactional):
        told = self.producers[producer_id]
        values = [b"%d-%d" % (producer_id, self.end + each) for each in range(count)]
        got = self.write(producer_id, told.epoch, told.next_sequence, values, transactional)
        if told.transaction is not None and not transactional:
            assert got is ErrorCode.INVALID_TXN_STATE
            return
        assert (got.base_offset, got.duplicate) == (self.end, False)
        if transactional and told.transaction is None:
            self.numbers += 1
            told.transaction = self.numbers
        told.has_written = True
        told.sent = [*told.sent, (told.next_sequence, values, transactional, self.end)][-5:]
        told.next_sequence += count
        of = told.transaction if transactional else None
        self.note(Entry(DATA, producer_id, self.end, values, of))

    @precondition(lambda self: any(each.sent for each in self.producers.values()))
    @rule(data=st.data())
    def one_of_the_last_five_again(self, data):
        known = [each for each in IDS if self.producers[each].sent]
        producer_id = data.draw(st.sampled_from(known))
        told = self.producers[producer_id]
        sequence, values, transactional, offset = data.draw(st.sampled_from(told.sent))
        got = self.write(producer_id, told.epoch, sequence, values, transactional)
        assert (got.base_offset, got.duplicate) == (offset, True)

    @rule(producer_id=ids, gap=st.integers(1, 5))
    def a_batch_too_far(self, producer_id, gap):
        told = self.producers[producer_id]
        if told.has_written:
            got = self.write(producer_id, told.epoch, told.next_sequence + gap, [b"no"], False)
            assert got is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    @rule(producer_id=ids, transactional=st.booleans(), sequence=st.integers(0, 3))
    def a_batch_of_a_zombie(self, producer_id, transactional, sequence):
        told = self.producers[producer_id]
        if told.epoch and told.has_written:
            got = self.write(producer_id, told.epoch - 1, sequence, [b"no"], transactional)
            assert got is ErrorCode.INVALID_PRODUCER_EPOCH

    @rule(producer_id=ids, commit=st.booleans(), version=st.sampled_from([1, 2]))
    def the_transaction_ends(self, producer_id, commit, version):
        told = self.producers[producer_id]
        epoch = told.epoch + 1 if version == 2 else told.epoch
        outcome = ControlType.COMMIT if commit else ControlType.ABORT
        got = self.attempt(end_transaction, Producer(producer_id, epoch), outcome, version=version)
        assert got.base_offset == self.end
        told.raise_epoch(epoch)
        told.has_written = True
        if told.transaction is not None:
            self.outcomes[told.transaction] = commit, self.end
            told.transaction = None
        self.note(Entry(MARKER, producer_id, self.end))

    @rule(producer_id=ids, commit=st.booleans(), back=st.integers(0, 2))
    def a_late_marker(self, producer_id, commit, back):
        """By version 2 it must be of a later epoch than what it ends."""
        told = self.producers[producer_id]
        epoch = told.epoch - back
        if not told.has_written or epoch < 0 or (back == 0 and told.transaction is None):
            return
        outcome = ControlType.COMMIT if commit else ControlType.ABORT
        got = self.attempt(end_transaction, Producer(producer_id, epoch), outcome, version=2)
        assert got is ErrorCode.INVALID_PRODUCER_EPOCH

    @rule()
    def restart(self):
        self.log = reopen(self.log, self.disk)
        self.forget()

    @rule()
    def recover(self):
        self.log.close()
        self.log = open_log(self.disk, clean=False)
        self.forget()

    @rule(data=st.data())
    def followers_catch_up(self, data):
        ends = [each.end for each in self.entries if each.end >= self.high]
        self.high = data.draw(st.sampled_from(ends)) if ends else self.high

    def forget(self):
        """A snapshot has the last batch of each producer, and so much is sure to be known."""
        for told in self.producers.values():
            told.sent = told.sent[-1:]
        # Which ends are above the high watermark is not in a snapshot; a lone replica has none.
        self.high = self.end

    @rule()
    def roll(self):
        if self.log.active.size_bytes:
            self.log.roll(1_700_000_000_000)

    # What readers see.

    def stable_offset(self, high_watermark):
        """Everything before belongs to what is decided, and the decision is committed."""
        for entry in self.entries:
            outcome = self.outcomes.get(entry.transaction)
            undecided = entry.transaction is not None and outcome is None
            if undecided or (outcome is not None and outcome[1] >= high_watermark):
                return min(entry.first, high_watermark)
        return high_watermark

    def committed_values(self, start, end):
        found = []
        for entry in self.entries:
            outcome = self.outcomes.get(entry.transaction)
            if entry.kind is DATA and (entry.transaction is None or (outcome and outcome[0])):
                numbered = enumerate(entry.values, entry.first)
                found += [value for offset, value in numbered if start <= offset < end]
        return found

    @invariant()
    def the_last_stable_offset_is_where_the_first_undecided_begins(self):
        # Once an end is known to be committed it stays so: the high watermark only rises.
        assert self.log.last_stable_offset(self.high) == self.stable_offset(self.high)

    @precondition(lambda self: self.high)
    @rule(data=st.data(), max_bytes=st.sampled_from([100, 400, 100_000]))
    def a_reader_of_committed_data(self, data, max_bytes):
        start = data.draw(st.integers(0, self.high - 1))
        stable = self.log.last_stable_offset(self.high)
        found = read(self.log, start, max_bytes=max_bytes, end_offset=stable, whole_first=True)
        if found is None:
            assert start >= stable
            return
        aborted = {}
        for each in patiently(lambda: self.log.aborted_within(start, found)):
            aborted.setdefault(each.producer_id, []).append(each.first_offset)
        seen, end = as_a_client_reads(found.read_bytes(), aborted, start)
        assert end > start, "the reader does not get on"
        assert seen == self.committed_values(start, end)


def as_a_client_reads(data, aborted, start):
    """Skip what is aborted as clients do: from its first offset on, until its marker."""
    skipping, seen, end = set(), [], start
    for each in whole_batches(data):
        header = read_header(each)
        producer_id = header.producer_id
        begun = [it for it in aborted.get(producer_id, ()) if it <= header.last_offset]
        if begun:
            skipping.add(producer_id)
            aborted[producer_id] = [it for it in aborted[producer_id] if it not in begun]
        if header.is_control:
            skipping.discard(producer_id)
        elif not (header.is_transactional and producer_id in skipping):
            seen += [it.value for it in read_records(each) if it.offset >= start]
        end = header.last_offset + 1
    return seen, end


TestWriting = Writing.TestCase
TestWriting.settings = settings(max_examples=examples(150), stateful_step_count=50, deadline=None)
