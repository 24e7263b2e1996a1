"""Members of groups, many on one loop: what a consumer asks of its brokers, and no more.

A client library waits by itself: for its heartbeat interval, between two joins, for its threads.
These members have little to wait for but the broker, so that it is the broker that is measured:

- A heartbeat is due the moment that there may be something to hear: that somebody has come or
  gone, and for a member of the consumer protocol, if it has more than its share, or lacks some
  and another has given some up. What was not there yet is asked for again after AGAIN_MS.
- Who is given a partition asks what a consumer asks: for the group's offset, for the first
  offset, for the records from there on.

Each has a connection of its own, and one request under way.
"""

import asyncio
import struct
import uuid
from collections import Counter
from contextlib import suppress
from datetime import timedelta

from bench.asking import HEAD, Wire
from strom.wire.errors import ErrorCode

#: Between two heartbeats of who has nothing to hear.
BEAT_MS = 3000
#: Between those of who may have, for each member of the group.
AGAIN_MS = 0.2
AGAIN_MS_MIN = 1
SESSION = timedelta(seconds=45)
REBALANCE = timedelta(seconds=60)
NOTHING = timedelta()
MILLISECOND = timedelta(milliseconds=1)
EARLIEST = -2
#: What is said of groups whose coordinator is being made.
NOT_READY = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
FETCH_BYTES_MAX = 1 << 20
_ASSIGNMENT = struct.Struct(">hih")
_EPOCH = struct.Struct(">i")


class Group:
    """A group's members, and who has read which partition."""

    def __init__(self, name, topic, partitions, apis, frames):
        self.name, self.topic, self.partitions, self.apis = name, topic, partitions, apis
        #: Requests that are the same for all groups, by what they ask for.
        self._frames = frames
        self.members, self.readers = [], {}
        #: How many partitions are with members, read or not.
        self.held_count = 0
        self.settled = None
        self.failed = None

    def frame(self, name, fields, wanted):
        """A request about partitions, which is written once."""
        found = self._frames.get((name, wanted))
        if found is None:
            found = self._frames[name, wanted] = self.apis[name].frame(**fields(wanted))
        return found

    def is_settled(self):
        """Whether every partition has been read by whom it belongs to, and all have their share."""
        if len(self.readers) < self.partitions:
            return False
        shares = Counter(self.readers.values())
        return all(shares[each] >= self.share for each in self.members)

    @property
    def share(self):
        """The least that everybody gets."""
        return self.partitions // len(self.members)

    @property
    def share_max(self):
        """The most that anybody gets."""
        return -(-self.partitions // len(self.members))

    def has_free(self):
        """Whether somebody is about to be given something."""
        return self.held_count < self.partitions

    def note(self, member, partitions):
        """Take note that the member has read the partitions."""
        self.readers.update(dict.fromkeys(partitions, member))
        if self.settled is not None and self.is_settled() and not self.settled.done():
            self.settled.set_result(None)

    def forget(self, member, partitions):
        """Take note that the partitions are no longer the member's."""
        for each in partitions:
            if self.readers.get(each) is member:
                del self.readers[each]

    def fail(self, error):
        self.failed = error
        if self.settled is not None and not self.settled.done():
            self.settled.set_exception(error)

    def begin_change(self):
        if self.failed is not None:
            raise self.failed
        self.settled = asyncio.get_running_loop().create_future()

    async def end(self):
        """Let everybody go, nobody hearing of the others."""
        await asyncio.gather(*(each.rest() for each in self.members))
        while self.members:
            await self.members[-1].stop()

    def wake_others(self, member):
        """Have the heartbeats be due of all others that may have something to hear."""
        for each in self.members:
            if each is not member and not each.is_due and each.is_concerned():
                each.wake()


class Member:
    """One member; what differs by protocol is how it comes by its partitions."""

    def __init__(self, group, wire):
        self.group, self.wire = group, wire
        self.id = ""
        self.held = frozenset()
        self.is_due = False
        self._alarm = None
        self._task = None

    def start(self):
        self.group.members.append(self)
        self._task = asyncio.create_task(self._run())

    async def _run(self):
        try:
            await self.live()
        except Exception as error:  # noqa: BLE001 - told to who waits for the group
            self.group.fail(error)

    async def stop(self):
        """Leave the group between two requests; the others hear of it."""
        await self.rest()
        self.group.members.remove(self)
        self.group.forget(self, self.held)
        self.hold(frozenset())
        await self.leave()
        self.group.wake_others(self)
        self.wire.close()

    async def rest(self):
        """Ask nothing more by itself."""
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        await self.wire.idle()

    async def ask(self, name, **fields):
        return await self.send(name, self.group.apis[name].frame(**fields))

    async def send(self, name, frame):
        return self.group.apis[name].read(await self.wire.send(frame))

    def hold(self, partitions):
        """Have these, and no other."""
        self.group.held_count += len(partitions) - len(self.held)
        self.held = partitions

    def wake(self):
        self.is_due = True
        if self._alarm is not None and not self._alarm.done():
            self._alarm.set_result(None)

    async def pause(self):
        """Wait until the next heartbeat is due."""
        loop = asyncio.get_running_loop()
        delay_ms = BEAT_MS
        if self.is_concerned():
            delay_ms = max(AGAIN_MS * len(self.group.members), AGAIN_MS_MIN)
        if not self.is_due:
            self._alarm = loop.create_future()
            timer = loop.call_later(delay_ms / 1000, self.wake)
            await self._alarm
            timer.cancel()
        self.is_due = False

    async def read(self, partitions):
        """Ask for the group's offsets, for the first ones, and for the records; note them."""
        if not partitions:
            return
        group, wanted = self.group, tuple(sorted(partitions))
        await self.ask("offset_fetch", **self._offsets(wanted))
        await self.send("list_offsets", group.frame("list_offsets", self._first, wanted))
        answer = await self.send("fetch", group.frame("fetch", self._records, wanted))
        read = [
            each.partition_index
            for topic in answer.responses
            for each in topic.partitions
            if each.records
        ]
        assert len(read) == len(wanted), f"{read} of {wanted} were read"
        group.note(self, read)

    def _offsets(self, wanted):
        topic = self.group.apis["offset_fetch"].module.OffsetFetchRequestTopic
        named = topic(name=self.group.topic, partition_indexes=wanted)
        return {"group_id": self.group.name, "topics": (named,)}

    def _first(self, wanted):
        module = self.group.apis["list_offsets"].module
        each = tuple(
            module.ListOffsetsPartition(partition_index=n, timestamp=EARLIEST) for n in wanted
        )
        topic = module.ListOffsetsTopic(name=self.group.topic, partitions=each)
        return {"replica_id": -1, "isolation_level": 0, "topics": (topic,)}

    def _records(self, wanted):
        module = self.group.apis["fetch"].module
        each = tuple(
            module.FetchPartition(partition=n, fetch_offset=0, partition_max_bytes=FETCH_BYTES_MAX)
            for n in wanted
        )
        topic = module.FetchTopic(topic=self.group.topic, partitions=each)
        return {
            "max_wait": MILLISECOND,
            "min_bytes": 1,
            "topics": (topic,),
            "forgotten_topics_data": (),
        }


class ClassicMember(Member):
    """Joins, is told its partitions or tells them all, and joins again when it is told to."""

    generation = -1

    def is_concerned(self):
        """Whether there may be something to hear: whatever happens, everybody joins again."""
        return not self.group.is_settled()

    async def live(self):
        while True:
            self.group.forget(self, self.held)
            self.hold(frozenset())
            if not await self.join():
                continue
            await self.read(self.held)
            while await self.beat():
                await self.pause()

    async def join(self):
        joined = await self.ask("join_group", **self._joining())
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.id = joined.member_id
            api = self.group.apis["join_group"]
            asked = self.wire.send(api.frame(**self._joining()))
            self.group.wake_others(self)
            joined = api.read(await asked)
        if joined.error_code in NOT_READY:
            await self.pause()
        if joined.error_code != ErrorCode.NONE:
            return False
        self.generation = joined.generation_id
        shares = self._shares(joined) if joined.leader == self.id else ()
        synced = await self.ask(
            "sync_group",
            group_id=self.group.name,
            generation_id=self.generation,
            member_id=self.id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=shares,
        )
        if synced.error_code != ErrorCode.NONE:
            return False
        self.hold(frozenset(read_assignment(synced.assignment)))
        return True

    def _joining(self):
        protocol = self.group.apis["join_group"].module.JoinGroupRequestProtocol
        return {
            "group_id": self.group.name,
            "session_timeout": SESSION,
            "rebalance_timeout": REBALANCE,
            "member_id": self.id,
            "protocol_type": "consumer",
            "protocols": (protocol(name="range", metadata=write_subscription(self.group.topic)),),
        }

    def _shares(self, joined):
        """What everybody shall read: ranges, as the leader of a group hands them out."""
        assigned = self.group.apis["sync_group"].module.SyncGroupRequestAssignment
        names = sorted(each.member_id for each in joined.members)
        least, more = divmod(self.group.partitions, len(names))
        shares, begin = [], 0
        for number, name in enumerate(names):
            end = begin + least + (number < more)
            data = write_assignment(self.group.topic, range(begin, end))
            shares.append(assigned(member_id=name, assignment=data))
            begin = end
        return tuple(shares)

    async def beat(self):
        """Whether all is as it was."""
        answer = await self.ask(
            "heartbeat",
            group_id=self.group.name,
            generation_id=self.generation,
            member_id=self.id,
        )
        return answer.error_code == ErrorCode.NONE

    async def leave(self):
        identity = self.group.apis["leave_group"].module.MemberIdentity
        await self.ask(
            "leave_group", group_id=self.group.name, members=(identity(member_id=self.id),)
        )


class ConsumerMember(Member):
    """Says what it holds, and is told what it shall hold."""

    epoch = 0
    #: The heartbeat of who has nothing to say, but for the epoch; and where that stands.
    _plain = None
    _epoch_at = 0

    def is_concerned(self):
        """Whether there may be something to hear: what to give up, or to take."""
        group, count = self.group, len(self.held)
        if group.share <= count < group.share_max:
            return group.has_free()
        return count != group.share_max

    async def live(self):
        self.id = str(uuid.uuid4())
        answer = await self.beat(
            rebalance_timeout=REBALANCE,
            subscribed_topic_names=(self.group.topic,),
            topic_partitions=(),
        )
        self.group.wake_others(self)
        while True:
            if answer.assignment is None:
                await self.pause()
                answer = await self.beat(topic_partitions=None)
            else:
                held, gives_up = answer.assignment.topic_partitions, await self.take(answer)
                answer = await self.beat(topic_partitions=held)
                if gives_up:
                    self.group.wake_others(self)

    async def take(self, answer):
        """Hold what is told, and nothing else; whether that is to give something up."""
        topics = answer.assignment.topic_partitions
        told = frozenset(n for topic in topics for n in topic.partitions)
        gained, lost = told - self.held, self.held - told
        self.group.forget(self, lost)
        self.hold(told)
        await self.read(gained)
        return bool(lost)

    async def beat(self, topic_partitions, **fields):
        if topic_partitions is None:
            frame = self._plain_frame()
        else:
            frame = self._frame(topic_partitions, **fields)
        answer = await self.send("consumer_group_heartbeat", frame)
        if answer.error_code in NOT_READY:
            await self.pause()
            return await self.beat(topic_partitions, **fields)
        assert answer.error_code == ErrorCode.NONE, answer
        self.epoch = answer.member_epoch
        return answer

    def _frame(self, topic_partitions, **fields):
        api = self.group.apis["consumer_group_heartbeat"]
        own = api.module.TopicPartitions
        topics = topic_partitions and tuple(
            own(topic_id=each.topic_id, partitions=each.partitions) for each in topic_partitions
        )
        return api.frame(
            group_id=self.group.name,
            member_id=self.id,
            member_epoch=self.epoch,
            topic_partitions=topics,
            **fields,
        )

    def _plain_frame(self):
        """Written once: to write it anew would take a third of the time of a heartbeat."""
        if self._plain is None:
            self._plain = bytearray(self._frame(None))
            # Behind both names, each with a byte for its length.
            names = len(self.group.name.encode()) + len(self.id.encode()) + 2
            self._epoch_at = HEAD.size + 1 + names
        _EPOCH.pack_into(self._plain, self._epoch_at, self.epoch)
        return bytes(self._plain)

    async def leave(self):
        self.epoch = -1
        await self.beat(topic_partitions=None)


def write_subscription(topic):
    """Version, topics, and no data of the member's own."""
    name = topic.encode()
    return _ASSIGNMENT.pack(0, 1, len(name)) + name + struct.pack(">i", -1)


def write_assignment(topic, partitions):
    name = topic.encode()
    numbers = struct.pack(f">i{len(partitions)}i", len(partitions), *partitions)
    return _ASSIGNMENT.pack(0, 1, len(name)) + name + numbers + struct.pack(">i", -1)


def read_assignment(data):
    """The partitions of the one topic; none, if nobody has assigned anything."""
    if not data:
        return ()
    _, _, size = _ASSIGNMENT.unpack_from(data)
    position = _ASSIGNMENT.size + size
    (count,) = struct.unpack_from(">i", data, position)
    return struct.unpack_from(f">{count}i", data, position + 4)


KINDS = {"classic": ClassicMember, "consumer": ConsumerMember}


async def new_member(group, protocol, bootstrap):
    """Connect a member that has not joined yet."""
    host, _, port = bootstrap.rpartition(":")
    loop = asyncio.get_running_loop()
    _, wire = await loop.create_connection(Wire, host, int(port))
    return KINDS[protocol](group, wire)
