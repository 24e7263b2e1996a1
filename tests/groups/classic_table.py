"""One classic group and its coordinator around a table: a clock to move, a log, and who waits."""

from strom.groups import records
from strom.groups.classic import joining, leaving, presence, syncing
from strom.groups.classic.group import Protocol
from strom.groups.classic.joining import JoinRequest, Limits
from strom.groups.classic.leaving import Leaver
from strom.groups.classic.logged import group_record, read_group
from strom.groups.classic.syncing import SyncRequest
from strom.replicated.machine import Wait
from strom.wire.errors import ErrorCode, KafkaError

GROUP = "g"
#: An arbitrary time to begin at.
START_MS = 1_000_000
SESSION_MS = 10_000
REBALANCE_MS = 60_000
DELAY_MS = 3_000
RANGE = (Protocol("range", b"m"),)


def as_logged(group):
    """Return what a coordinator that begins anew would know of a group whose round is over."""
    return read_group(group.id, group_record(group).value)


class Call:
    """A request and, once it is there, its answer."""

    def __init__(self, ticket=None, reply=None):
        self.ticket = ticket
        self.replies = [] if reply is None else [reply]

    @property
    def waits(self):
        return not self.replies

    @property
    def reply(self):
        (reply,) = self.replies
        return reply

    @property
    def error(self):
        return self.reply if isinstance(self.reply, ErrorCode) else self.reply.error


class Table:
    """Carries out decisions as a shard does, and checks of each that asking changes nothing."""

    def __init__(self, *, max_size=1000, delay_ms=DELAY_MS):
        self.limits = Limits(max_size, delay_ms)
        self.now_ms = START_MS
        self.log = []
        self.logged = None
        self.soft = None
        self.timers = {}
        self.waiting = []
        self.ids = 0
        #: The timers that came, in order.
        self.came = []

    # What a shard does.

    @property
    def group(self):
        return self.soft or self.logged

    def carry_out(self, ask):
        before = (self.logged, self.soft)
        outcomes = [self._attempt(ask) for _ in range(2)]
        assert outcomes[0] == outcomes[1], "asking twice gave two answers"
        assert (self.logged, self.soft) == before, "a decision changed the state"
        decision = outcomes[0]
        if isinstance(decision, ErrorCode):
            return Call(reply=decision)
        for record in decision.records:
            written = (records.write_key(record.key), records.write_value(record.value))
            self.log.append(written)
            self.apply(records.read(*written))
        for key, value in decision.soft:
            assert key == GROUP
            self.soft = value
        for key, due_ms in decision.timers:
            if due_ms is None:
                self.timers.pop(key, None)
            else:
                self.timers[key] = due_ms
        return self._answer(decision)

    @staticmethod
    def _attempt(ask):
        try:
            return ask()
        except KafkaError as error:
            return error.code

    def _answer(self, decision):
        if isinstance(decision.reply, Wait):
            call = Call(decision.reply.ticket)
            self.waiting.append(call)
        else:
            call = Call(reply=decision.reply)
        for ticket, reply in decision.answers:
            for each in [each for each in self.waiting if each.ticket == ticket]:
                each.replies.append(reply)
                self.waiting.remove(each)
        return call

    def apply(self, record):
        assert record.key.group == GROUP
        self.logged = None if record.value is None else read_group(GROUP, record.value)

    def advance(self, by_ms):
        """Let time pass, and the timers come that are due meanwhile."""
        end_ms = self.now_ms + by_ms
        while self.timers:
            key = min(self.timers, key=lambda each: (self.timers[each], each))
            if self.timers[key] > end_ms:
                break
            self.now_ms = max(self.now_ms, self.timers.pop(key))
            self.came.append(key)
            self.carry_out(lambda key=key: leaving.on_timer(self.group, key, self.now_ms))
        self.now_ms = end_ms

    def restart(self):
        """Begin anew with what the log has; nobody who waited is answered."""
        self.soft, self.logged, self.timers, self.waiting = None, None, {}, []
        for written in self.log:
            self.apply(records.read(*written))
        if self.group is not None:
            self.carry_out(
                lambda: presence.on_loaded(self.group, self.limits.max_size, self.now_ms)
            )

    # What clients do.

    def join(self, member_id="", *, instance=None, protocols=RANGE, **other):
        self.ids += 1
        client = other.get("client", "client")
        request = JoinRequest(
            GROUP,
            member_id,
            instance,
            client,
            "/127.0.0.1",
            other.get("session_ms", SESSION_MS),
            other.get("rebalance_ms", REBALANCE_MS),
            other.get("kind", "consumer"),
            protocols,
            new_member_id=f"{instance or client}-{self.ids}",
            must_return=other.get("must_return", True),
            can_skip=other.get("can_skip", True),
        )
        now_ms = self.now_ms
        return self.carry_out(
            lambda: joining.join(self.group, request, limits=self.limits, now_ms=now_ms)
        )

    def enter(self, **other):
        """Join as a newcomer who comes back with the id that it is given."""
        first = self.join(**other)
        assert first.error is ErrorCode.MEMBER_ID_REQUIRED
        return first.reply.member_id, self.join(first.reply.member_id, **other)

    def sync(self, member_id, generation_id, *, instance=None, given=None, **protocol):
        request = SyncRequest(
            GROUP, member_id, instance, generation_id, assignments=given or {}, **protocol
        )
        return self.carry_out(lambda: syncing.sync(self.group, request, now_ms=self.now_ms))

    def beat(self, member_id, generation_id, instance=None):
        return self.carry_out(
            lambda: presence.heartbeat(
                self.group, member_id, instance, generation_id, now_ms=self.now_ms
            )
        )

    def leave(self, *leavers):
        who = [each if isinstance(each, Leaver) else Leaver(each) for each in leavers]
        return self.carry_out(lambda: leaving.leave(self.group, who, now_ms=self.now_ms))

    def settle(self, *member_ids, **assignments):
        """Have everybody of the generation sync; return what each got."""
        group = self.group
        given = {key: f"part of {key}".encode() for key in group.members} | assignments
        order = [each for each in group.members if each != group.leader] + [group.leader]
        calls = {
            each: self.sync(each, group.generation_id, given=given if each == group.leader else {})
            for each in order
            if not member_ids or each in member_ids
        }
        return {key: call.reply.assignment for key, call in calls.items()}

    def found(self, count=2, **other):
        """Make a stable group; return the ids of its members, the leader first."""
        ids = [self.enter(**other)[0] for _ in range(count)]
        self.advance(2 * DELAY_MS)
        self.settle()
        return ids
