"""Any history of a classic group keeps what the protocol promises.

The model knows what each client was told, not how the coordinator works. It checks that
- a partition has one owner in a generation, and every member is told what the leader gave it;
- every request is answered, exactly once, and whoever waits is known to the group;
- the members of a generation agree on its leader and its protocol;
- who lost its place to its next life gets nothing any more;
- silence ends: when no client says anything, all are answered and out in bounded time;
- the log gives back the last round that was over, and deciding changes nothing (`Table`).
"""

from hypothesis import settings
from hypothesis import strategies as some
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from strom.groups import records
from strom.groups.classic.group import Phase, Protocol
from strom.groups.classic.joining import NEW_MEMBER_TIMEOUT_MS
from strom.groups.classic.leaving import Leaver
from strom.groups.classic.replies import Joined, Synced, join_ticket, sync_ticket
from strom.groups.machine import APPLY
from strom.wire.errors import ErrorCode
from tests.effort import examples
from tests.groups.classic_table import GROUP, Table, as_logged

PARTITIONS = range(4)
#: After which everybody is out who says nothing: the longest of all time-outs, one after another.
SILENCE_MS = NEW_MEMBER_TIMEOUT_MS + 3 * (60_000 + 30_000)
NAMES = some.sampled_from([None, None, None, "a", "b"])
PROTOCOLS = some.sampled_from(
    [
        (Protocol("range", b"x"),),
        (Protocol("range", b"y"),),
        (Protocol("range", b"x"), Protocol("sticky", b"z")),
        (Protocol("sticky", b"z"), Protocol("range", b"x")),
    ]
)


def identity(member_id):
    """Return what stays of a member in its next life: a static one's name (see `Table.join`)."""
    name, _, _ = member_id.rpartition("-")
    return member_id if name == "client" else name


class Client:
    """What one life of a consumer knows."""

    def __init__(self, instance, offer):
        self.instance = instance
        #: Its protocols and time-outs.
        self.offer = offer
        self.member_id = ""
        self.told = None
        self.assignment = None
        self.call = None

    @property
    def waits(self):
        return self.call is not None and self.call.waits

    @property
    def generation(self):
        return -1 if self.told is None else self.told.generation_id


@some.composite
def offers(draw):
    return {
        "protocols": draw(PROTOCOLS),
        "session_ms": draw(some.sampled_from([6_000, 30_000])),
        "rebalance_ms": draw(some.sampled_from([0, 5_000, 60_000, 60_000])),
    }


class AnyClassicGroup(RuleBasedStateMachine):
    """Clients come and go, ask at the wrong time, ask twice, and fall silent."""

    def __init__(self):
        super().__init__()
        self.table = Table(max_size=4)
        self.clients = []
        self.calls = []
        #: Whose place was taken over, by (member id, instance).
        self.fenced = set()
        #: In this life of the coordinator: leader and protocol by generation.
        self.terms = {}
        #: Who owns a partition in a generation, and what the leader gave to whom.
        self.owners = {}
        self.given = {}
        #: How many records of the log were looked at.
        self.replayed = 0

    # What clients do.

    @rule(instance=NAMES, offer=offers(), must_return=some.booleans(), can_skip=some.booleans())
    def come(self, instance, offer, must_return, can_skip):
        group = self.table.group
        old_id = group.instances.get(instance) if group is not None else None
        client = Client(instance, offer)
        call = self.table.join(
            instance=instance, **offer, must_return=must_return, can_skip=can_skip
        )
        if old_id is not None and (call.waits or call.error is ErrorCode.NONE):
            self.fenced.add((old_id, instance))
        if call.waits or call.error is ErrorCode.NONE:
            self.clients.append(client)
            client.member_id = self.table.group.instances.get(instance, f"client-{self.table.ids}")
        elif call.error is ErrorCode.MEMBER_ID_REQUIRED:
            self.clients.append(client)
            client.member_id = call.reply.member_id
        self.ask(client, call)

    @precondition(lambda self: self.clients)
    @rule(data=some.data())
    def somebody_joins_again(self, data):
        self.join_again(self.one(data))

    @precondition(lambda self: self.clients)
    @rule(data=some.data(), offer=offers())
    def somebody_has_something_new_to_say(self, data, offer):
        client = self.one(data)
        client.offer = offer
        self.join_again(client)

    @precondition(lambda self: self.clients)
    @rule(data=some.data(), late=some.integers(0, 1))
    def somebody_syncs(self, data, late):
        client = self.one(data)
        if client.told is not None:
            self.sync(client, client.generation - late)

    @precondition(lambda self: self.clients)
    @rule(data=some.data())
    def somebody_sends_a_heartbeat(self, data):
        self.beat(self.one(data))

    @precondition(lambda self: self.clients)
    @rule(data=some.data())
    def somebody_does_what_it_should(self, data):
        self.obey(self.one(data))

    @rule(rounds=some.integers(1, 4), lazy=some.integers(0, 6))
    def all_but_one_do_what_they_should(self, rounds, lazy):
        for _ in range(rounds):
            for number, client in list(enumerate(self.clients)):
                if number != lazy:
                    self.obey(client)
            self.table.advance(1_000)
            self.look()

    @precondition(lambda self: self.clients)
    @rule(data=some.data())
    def some_leave(self, data):
        leaving = data.draw(some.lists(some.sampled_from(self.clients), max_size=2))
        who = [Leaver(each.member_id, each.instance) for each in leaving]
        codes = self.table.leave(*who).reply
        group = self.table.group
        for each, code in zip(who, codes, strict=True):
            if code is ErrorCode.NONE:
                assert each.member_id not in group.members
                assert each.member_id not in group.promised
                assert each not in self.fenced
        self.look()

    def one(self, data):
        return data.draw(some.sampled_from(self.clients))

    def obey(self, client):
        """Do what a client does next by itself."""
        if client.waits:
            return
        if client.told is None:
            self.join_again(client)
        elif client.assignment is None:
            self.sync(client, client.generation)
        else:
            match self.beat(client):
                case ErrorCode.REBALANCE_IN_PROGRESS | ErrorCode.ILLEGAL_GENERATION:
                    self.join_again(client)
                case ErrorCode.UNKNOWN_MEMBER_ID | ErrorCode.FENCED_INSTANCE_ID:
                    self.clients.remove(client)

    def join_again(self, client):
        call = self.table.join(client.member_id, instance=client.instance, **client.offer)
        self.ask(client, call)

    def sync(self, client, generation):
        given = {}
        if client.told.members:
            ids = sorted(each.member_id for each in client.told.members)
            given = {each: bytes(PARTITIONS[n :: len(ids)]) for n, each in enumerate(ids)}
        was, current = self.table.group.phase, self.table.group.generation_id
        call = self.table.sync(client.member_id, generation, instance=client.instance, given=given)
        call.generation = generation
        if was is Phase.COMPLETING and self.table.group.phase is Phase.STABLE:
            self.given[generation] = given
            self.owners[generation] = {}
        self.ask(client, call)
        if generation != current:
            assert call.error is not ErrorCode.NONE

    def beat(self, client):
        code = self.table.beat(client.member_id, client.generation, client.instance).error
        if (client.member_id, client.instance) in self.fenced:
            assert code in (ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNKNOWN_MEMBER_ID)
        if code is ErrorCode.NONE:
            assert client.member_id in self.table.group.members
            assert client.generation == self.table.group.generation_id
        return code

    def ask(self, client, call):
        client.call = call
        self.calls.append((client, call))
        self.look()

    # What happens.

    @rule(ms=some.sampled_from([1, 500, 3_000, 6_000, 30_000, 60_000]))
    def time_passes(self, ms):
        self.table.advance(ms)
        self.look()

    @rule()
    def the_coordinator_restarts(self):
        self.table.restart()
        self.terms = {}
        self.calls = [(client, call) for client, call in self.calls if not call.waits]
        # A round that was under way is forgotten, and with it who took whose place in it.
        if self.table.group is not None:
            members = self.table.group.members
            self.fenced = {each for each in self.fenced if each[0] not in members}

    def teardown(self):
        """In the end nobody says anything any more."""
        self.table.advance(SILENCE_MS)
        self.look()
        assert self.table.waiting == []
        assert self.table.timers == {}
        group = self.table.group
        assert group is None or (group.phase is Phase.EMPTY and not group.promised)

    # What was promised.

    def look(self):
        """Take in the answers that have come."""
        for client, call in list(self.calls):
            if not call.waits:
                self.calls.remove((client, call))
                self.hear(client, call, call.reply)

    def hear(self, client, call, reply):
        match reply:
            case Joined(error=ErrorCode.NONE):
                self.hear_joined(client, reply)
            case Synced(error=ErrorCode.NONE):
                self.hear_synced(client, call, reply)
            case Joined(error=ErrorCode.UNKNOWN_MEMBER_ID | ErrorCode.FENCED_INSTANCE_ID):
                client.told = client.assignment = None
            case _:
                client.told = None

    def hear_joined(self, client, reply):
        assert client.member_id == reply.member_id
        assert (reply.member_id, client.instance) not in self.fenced
        client.told, client.assignment = reply, None
        assert bool(reply.members) == (reply.leader == reply.member_id)
        term = (identity(reply.leader), reply.protocol)
        assert self.terms.setdefault(reply.generation_id, term) == term

    def hear_synced(self, client, call, reply):
        assert (client.member_id, client.instance) not in self.fenced
        client.assignment = reply.assignment
        me = identity(client.member_id)
        mine = [part for each, part in self.given[call.generation].items() if identity(each) == me]
        assert reply.assignment == (mine[0] if mine else b"")
        owners = self.owners[call.generation]
        for partition in reply.assignment:
            assert owners.setdefault(partition, me) == me, "a partition with two owners"

    @invariant()
    def who_waits_is_known_to_the_group(self):
        group = self.table.group
        expected = set()
        if group is not None:
            expected = {join_ticket(GROUP, each) for each in group.joining}
            expected |= {sync_ticket(GROUP, each) for each in group.syncing}
            assert group.joining <= group.members.keys()
            assert group.syncing <= group.members.keys()
        assert {each.ticket for each in self.table.waiting} == expected

    @invariant()
    def the_group_is_sound(self):
        group = self.table.group
        if group is None:
            return
        assert (group.phase is Phase.EMPTY) <= (not group.members)
        assert group.leader in group.members or not group.members
        assert set(group.instances.values()) <= group.members.keys()
        assert not group.promised & group.members.keys()
        assert not group.joining or group.phase is Phase.PREPARING
        assert not group.syncing or group.phase is Phase.COMPLETING
        assert not group.unsynced or group.phase in (Phase.COMPLETING, Phase.STABLE)
        assert len(group.joining) <= self.table.limits.max_size
        if group.phase in (Phase.COMPLETING, Phase.STABLE):
            assert all(group.protocol in each.names for each in group.members.values())
        if group.phase is Phase.STABLE:
            assert self.table.logged == as_logged(group)

    @invariant()
    def the_log_gives_the_last_round_back(self):
        """With the parts that its leader gave, which are not known from the log."""
        if len(self.table.log) == self.replayed:
            return
        self.replayed = len(self.table.log)
        groups = {}
        for written in self.table.log:
            key, value = records.read(*written)
            APPLY[type(key)](groups, key, value)
        group = groups.get(GROUP)
        assert group == self.table.logged
        if group is None or group.phase is Phase.EMPTY:
            return
        given = {identity(each): part for each, part in self.given[group.generation_id].items()}
        for member in group.members.values():
            assert member.assignment == given.get(identity(member.id), b"")


TestAnyClassicGroup = AnyClassicGroup.TestCase
TestAnyClassicGroup.settings = settings(
    max_examples=examples(200), stateful_step_count=40, deadline=None
)
