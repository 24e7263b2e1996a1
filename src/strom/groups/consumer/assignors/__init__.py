"""The assignors of the broker: who of a group's members shall read which partitions.

Neither looks at racks: those of Kafka 4.3 do not either, and reading from a near replica does not
depend on who reads. That a partition is in other racks now has a group assigned anew all the same,
as in Kafka (KIP-1101).
"""

from collections.abc import Mapping
from typing import Final

from strom.groups.consumer.assignors import ranges, uniform
from strom.groups.consumer.assignors.subscriber import Assignor

#: By the names that clients and `group.consumer.assignors` use; Kafka's class names mean the same.
ASSIGNORS: Final[Mapping[str, Assignor]] = {
    "uniform": uniform.assign,
    "range": ranges.assign,
}
