"""The assignors of the broker: who of a group's members shall read which partitions.

Where members tell their racks, `uniform` prefers partitions that are in them; `range` does not, and
those of Kafka 4.3 look at no racks at all. That a partition is in other racks now has a group
assigned anew, as in Kafka (KIP-1101).
"""

from collections.abc import Mapping

from strom.groups.consumer.assignors import ranges, uniform
from strom.groups.consumer.assignors.subscriber import Assignor

#: By the names that clients and `group.consumer.assignors` use; Kafka's class names mean the same.
ASSIGNORS: Mapping[str, Assignor] = {
    "uniform": uniform.assign,
    "range": ranges.assign,
}
