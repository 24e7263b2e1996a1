"""What the definitions say about a resource's settings, as the controller asks it."""

from collections.abc import Mapping

from strom.metadata.settings.catalogue import BROKER, CLIENT_METRICS, GROUP, TOPIC, Kind, Resource
from strom.metadata.settings.changes import require
from strom.metadata.settings.definition import LIST, Setting
from strom.metadata.settings.values import BrokerSettings

DEFINITIONS: Mapping[int, Mapping[str, Setting]] = {
    Kind.TOPIC: TOPIC,
    Kind.BROKER: BROKER,
    Kind.GROUP: GROUP,
    Kind.CLIENT_METRICS: CLIENT_METRICS,
}


class SettingRules:
    """The rules, under the broker's settings of the moment."""

    def __init__(self, settings: BrokerSettings) -> None:
        self.settings = settings

    def check(self, resource: tuple[int, str], config: Mapping[str, str]) -> None:
        """Raise a KafkaError if the resource cannot have these settings."""
        require(Resource(*resource), config, self.settings)

    def is_list(self, resource_type: int, name: str) -> bool:
        """Whether the setting's value is a list."""
        setting = DEFINITIONS.get(resource_type, {}).get(name)
        return setting is not None and setting.type == LIST

    def default(self, resource_type: int, name: str) -> str | None:
        """Return the value that holds while none is set."""
        setting = DEFINITIONS.get(resource_type, {}).get(name)
        if setting is None:
            return None
        if resource_type == Kind.TOPIC:
            return TOPIC[name].write(self.settings.of_topic(name))
        return setting.write(setting.default)
