"""The state of a group, in the words of Kafka's tools.

librdkafka knows the states of the classic protocol. Those that only groups of the consumer protocol
have, while partitions change hands, it calls unknown; then the brokers are asked over plain
connections, and where there is none the state stays unknown.
"""

from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING

from strom.cli import client
from strom.cli.failure import USED_WRONGLY, Failure
from strom.cli.plain import ask
from strom.wire.messages import Call

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient, ConsumerGroupDescription, ConsumerGroupListing

LIST_GROUPS = Call("list_groups", 4)
NOBODY = "-"
UNKNOWN = "Unknown"
#: Those that librdkafka has no name for.
OF_CONSUMERS = ("Assigning", "Reconciling")


def word(value: Enum | None) -> str:
    """Return an enumeration's member as Kafka's tools write it: PreparingRebalance."""
    if value is None:
        return NOBODY
    return value.name.title().replace("_", "").replace("Rebalancing", "Rebalance")


def named(text: str, words: Iterable[str], what: str) -> str:
    """Return the word that a user names, in any case."""
    known = {each.lower(): each for each in words if each != UNKNOWN}
    try:
        return known[text.replace("_", "").replace("-", "").lower()]
    except KeyError:
        raise Failure(
            f"{text!r} is no {what} of a group: there are {', '.join(sorted(known))}", USED_WRONGLY
        ) from None


def states(
    admin: "AdminClient", groups: "Iterable[ConsumerGroupListing | ConsumerGroupDescription]"
) -> dict[str, str]:
    """Return the state of each group."""
    found = {each.group_id: word(each.state) for each in groups}
    if UNKNOWN in found.values():
        told = told_by_brokers(admin)
        found = {
            name: told.get(name, state) if state == UNKNOWN else state
            for name, state in found.items()
        }
    return found


def told_by_brokers(admin: "AdminClient") -> dict[str, str]:
    """Ask every broker for the states of the groups that it coordinates."""
    found: dict[str, str] = {}
    for broker in client.metadata(admin).brokers.values():
        address = (str(broker.host), broker.port)
        try:
            answer = ask(address, LIST_GROUPS, LIST_GROUPS.request.ListGroupsRequest())
        except Failure:
            # It wants TLS or SASL, which only librdkafka can.
            continue
        found.update((each.group_id, each.group_state) for each in answer.groups)
    return found
