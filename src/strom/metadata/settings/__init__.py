"""Every setting of a broker, a topic, a group: definitions, values in force, changes, descriptions.

    loaded = load({**read_properties(text), **read_overrides(["num.partitions=3"])})
    loaded.settings.number("num.partitions")
    loaded.settings.log_config({"retention.ms": "1000"})

Names, types, defaults and refusals are Apache Kafka 4.3's. The definitions are the lines of
`settings.txt`; `catalogue` has them all by name. `rules` and `describe` serve the requests that
change and describe settings, and are imported by those who need them.
"""

from strom.metadata.settings.definition import SettingsError, Value
from strom.metadata.settings.load import Loaded, load
from strom.metadata.settings.properties import read_overrides, read_properties
from strom.metadata.settings.values import BrokerSettings

__all__ = [
    "BrokerSettings",
    "Loaded",
    "SettingsError",
    "Value",
    "load",
    "read_overrides",
    "read_properties",
]
