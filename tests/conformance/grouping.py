"""Members of classic groups in a conversation: each has a connection, and a name of its own."""

from tests.conformance.raw import Raw
from tests.conformance.transcript import Transcript
from tests.patience import until, until_coordinated

#: Long enough for nothing to end by itself, and so short that one can wait for it.
LONG_MS, SHORT_MS = 60_000, 700
#: Short too, but there is time for a request: longer than a machine stalls.
BRIEF_MS = 3_000
NEWEST = {"join_group": 9, "sync_group": 5, "heartbeat": 4, "leave_group": 5}
RANGE = (("range", b"mine"),)
BUSY = ("coordinator_load_in_progress", "not_coordinator", "coordinator_not_available")


class Talk(Transcript):
    """A conversation about one group; ids of members are noted as the names of the members."""

    def __init__(self, bootstrap, name):
        super().__init__(bootstrap, name)
        self.known = {}
        self.members = []
        self.group = name
        self.coordinated(name)

    def coordinated(self, group):
        """Wait until the group has a coordinator that answers."""
        beat = {"group_id": group, "generation_id": 1, "member_id": "nobody"}
        until_coordinated(self.raw, group)
        until(
            lambda: self.raw.ask("describe_groups", 6, {"groups": [group]})["groups"],
            lambda states: states[0]["error_code"] not in BUSY,
        )
        until(
            lambda: self.raw.ask("heartbeat", 4, beat),
            lambda answer: answer["error_code"] not in BUSY,
        )

    def member(self, name, **other):
        made = Member(self, name, **other)
        self.members.append(made)
        return made

    def note(self, what, answer):
        """Note an answer as it is; whose ids are in it may become known later."""
        self.lines.append({what: answer})
        return answer

    def ask(self, api, version, values=None):
        return self.note(f"{api} v{version}", self.raw.ask(api, version, values or {}))

    def notes(self):
        """What was noted, as it is in every run."""
        return [self.steady(line) for line in self.lines]

    def steady(self, value, key=""):
        if isinstance(value, bytes):
            return value.decode("latin-1")
        if isinstance(value, list):
            return sorted((self.steady(each, key) for each in value), key=order)
        if isinstance(value, str):
            for member_id, name in self.known.items():
                value = value.replace(member_id, f"<{name}>")
        return super().steady(value, key)

    def until(self, ask, *codes):
        """Ask until one of these codes is the answer; return that answer."""
        return until(ask, lambda answer: answer["error_code"] in codes)

    def describe(self, *groups, version=6, **other):
        """Describe groups, this conversation's own if none is named."""
        names = list(groups) or [self.group]
        return self.ask("describe_groups", version, {"groups": names, **other})

    def list(self, version=5, **filters):
        """List this conversation's groups; those of others are not noted."""
        answer = self.raw.ask("list_groups", version, filters)
        own = [each for each in answer["groups"] if each["group_id"].startswith(self.name)]
        return self.note(f"list_groups v{version}", answer | {"groups": own})

    def delete(self, *groups, version=2):
        return self.ask("delete_groups", version, {"groups_names": list(groups)})

    def close(self):
        for each in self.members:
            each.raw.close()


def order(value):
    """Order what Apache Kafka has in a hash's order."""
    if not isinstance(value, dict):
        return str(value)
    return str(value.get("group_id", "")) + str(value.get("member_id", "")) + str(value)


class Member:
    """One member of the conversation's group."""

    def __init__(self, talk, name, *, instance=None, protocols=RANGE, **other):
        self.talk = talk
        self.name = name
        self.instance = instance
        self.protocols = protocols
        self.kind = other.get("kind", "consumer")
        self.session_ms = other.get("session_ms", LONG_MS)
        self.rebalance_ms = other.get("rebalance_ms", LONG_MS)
        self.id = ""
        self.generation = -1
        self.protocol = None
        self.raw = Raw(talk.bootstrap, client_id=name)
        self.version = None

    # Asking.

    def joining(self, **other):
        """What it asks to join with."""
        asked = {
            "group_id": self.talk.group,
            "member_id": self.id,
            "group_instance_id": self.instance,
            "session_timeout": self.session_ms,
            "rebalance_timeout": self.rebalance_ms,
            "protocol_type": self.kind,
            "protocols": [{"name": name, "metadata": data} for name, data in self.protocols],
            "reason": "to see what happens",
        }
        return asked | other

    def send_join(self, version=NEWEST["join_group"], **other):
        """Ask to join; the answer comes later."""
        self.version = version
        self.raw.send("join_group", version, self.joining(**other))

    def joined(self):
        """Note the answer to `send_join`."""
        _, answer = self.raw.receive("join_group", self.version)
        return self.take(answer)

    def join(self, version=NEWEST["join_group"], **other):
        self.send_join(version, **other)
        return self.joined()

    def enter(self, version=NEWEST["join_group"]):
        """Join as a newcomer, the round trip for the id not noted; the answer comes later."""
        # Who has an id and no place yet is forgotten when its session is over.
        answer = self.raw.ask("join_group", version, self.joining(session_timeout=LONG_MS))
        assert answer["error_code"] == "member_id_required", answer
        self.id = answer["member_id"]
        self.talk.known[self.id] = self.name
        self.send_join(version)

    def take(self, answer):
        if answer["member_id"] and answer["member_id"] != self.id:
            self.id = answer["member_id"]
            lives = sum(each.rstrip("'") == self.name for each in self.talk.known.values())
            self.talk.known.setdefault(self.id, self.name + "'" * lives)
        if answer["error_code"] == "none":
            self.generation = answer["generation_id"]
            self.protocol = answer["protocol_name"]
        return self.talk.note(f"{self.name}: join_group v{self.version}", answer)

    def send_sync(self, version=NEWEST["sync_group"], given=None, **other):
        """Ask for its part, as the leader with everybody's; the answer comes later."""
        asked = {
            "group_id": self.talk.group,
            "generation_id": self.generation,
            "member_id": self.id,
            "group_instance_id": self.instance,
            "protocol_type": self.kind,
            "protocol_name": self.protocol,
            "assignments": [
                {"member_id": each.id, "assignment": part} for each, part in (given or {}).items()
            ],
        }
        self.version = version
        self.raw.send("sync_group", version, asked | other)

    def synced(self):
        """Note the answer to `send_sync`."""
        _, answer = self.raw.receive("sync_group", self.version)
        return self.talk.note(f"{self.name}: sync_group v{self.version}", answer)

    def sync(self, version=NEWEST["sync_group"], given=None, **other):
        self.send_sync(version, given, **other)
        return self.synced()

    def ask_beat(self, version=NEWEST["heartbeat"], **other):
        """Send a heartbeat; nothing is noted."""
        asked = {
            "group_id": self.talk.group,
            "generation_id": self.generation,
            "member_id": self.id,
            "group_instance_id": self.instance,
        }
        return self.raw.ask("heartbeat", version, asked | other)

    def beat(self, version=NEWEST["heartbeat"], **other):
        return self.talk.note(f"{self.name}: heartbeat v{version}", self.ask_beat(version, **other))

    def beat_until(self, *codes):
        return self.talk.note(f"{self.name}: heartbeat", self.talk.until(self.ask_beat, *codes))

    def leave(self, *others, version=NEWEST["leave_group"]):
        """Leave, with others at once if any are given."""
        identities = [
            {"member_id": each.id, "group_instance_id": each.instance, "reason": "enough"}
            for each in (self, *others)
        ]
        asked = {"group_id": self.talk.group, "members": identities, "member_id": self.id}
        answer = self.raw.ask("leave_group", version, asked)
        return self.talk.note(f"{self.name}: leave_group v{version}", answer)


def settled(talk, *members):
    """A stable group of these; nothing is noted of how it came to be."""
    noted = len(talk.lines)
    first, *others = members
    join_first(first)
    for each in others:
        # Each newcomer calls those in who are there.
        join_first(each, wait=False)
        there = members[: members.index(each)]
        for other in there:
            talk.until(other.ask_beat, "rebalance_in_progress")
            other.send_join()
        for other in (*there, each):
            other.joined()
        share(first, members[: members.index(each) + 1])
    if not others:
        share(first, members)
    del talk.lines[noted:]
    return members


def hurried(talk, *members):
    """A stable group of these, in which a round is over soon whoever is missing.

    What counts is the time of the slowest that was there before, so a round too many is needed.
    """
    noted = len(talk.lines)
    settled(talk, *members)
    first, *others = members
    for each in members:
        each.rebalance_ms = BRIEF_MS
    first.send_join()
    for each in others:
        talk.until(each.ask_beat, "rebalance_in_progress")
        each.send_join()
    for each in members:
        each.joined()
    share(first, members)
    del talk.lines[noted:]
    return members


def join_first(member, wait=True):
    if member.instance is None:
        member.enter()
    else:
        member.send_join()
    if wait:
        member.joined()


def share(leader, members):
    """Have the leader share the work, and everybody fetch its part."""
    leader.sync(given={each: f"part of {each.name}".encode() for each in members})
    for each in members:
        if each is not leader:
            each.sync()
