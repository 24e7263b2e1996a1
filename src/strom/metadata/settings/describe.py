"""What DescribeConfigs answers: each setting's value, where it comes from, and what it overrides.

Sources and their order are Kafka's. A secret is never shown, and neither is the value of a name
that nobody defined: it may be one.
"""

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from strom.metadata.settings.catalogue import (
    BROKER,
    CLIENT_METRICS,
    DYNAMIC,
    GROUP,
    TOPIC,
    Kind,
    Resource,
    broker_names,
    without_listener,
)
from strom.metadata.settings.definition import RUN_TIME, UNKNOWN, Setting
from strom.metadata.settings.values import BrokerSettings

# Where a value comes from, by the protocol's numbers.
FROM_TOPIC: Final = 1
FROM_BROKER: Final = 2
FROM_CLUSTER: Final = 3
FROM_FILE: Final = 4
FROM_DEFAULT: Final = 5
FROM_LOGGER: Final = 6
FROM_CLIENT_METRICS: Final = 7
FROM_GROUP: Final = 8


class Synonym(NamedTuple):
    """A place that says something about a setting's value, perhaps overridden by others."""

    name: str
    value: str | None
    source: int


class Described(NamedTuple):
    """One setting as the response shows it."""

    name: str
    value: str | None
    read_only: bool
    source: int
    sensitive: bool
    #: What decides the value, the strongest first; whether to send them is the client's choice.
    synonyms: tuple[Synonym, ...]
    type: int
    documentation: str | None

    @property
    def is_default(self) -> bool:
        """Whether nobody has set anything."""
        return self.source == FROM_DEFAULT


def describe(
    resource: Resource,
    settings: BrokerSettings,
    overrides: Mapping[str, str],
    names: Collection[str] | None = None,
) -> list[Described]:
    """Describe a resource's settings, all or those named; sorted by name.

    The overrides are what was set for the resource itself. Of a broker only the one whose settings
    are given can be described; what was set for it at run time is in its settings.
    """
    if resource.kind == Kind.TOPIC:
        return describe_topic(settings, overrides, names)
    if resource.kind == Kind.BROKER:
        return (describe_broker if resource.name else describe_cluster)(settings, names)
    if resource.kind == Kind.GROUP:
        return describe_group(settings, overrides, names)
    assert resource.kind == Kind.CLIENT_METRICS
    return describe_client_metrics(overrides, names)


def describe_topic(
    settings: BrokerSettings,
    overrides: Mapping[str, str],
    names: Collection[str] | None = None,
) -> list[Described]:
    """Describe a topic's settings, all or those named."""
    described = []
    for name in chosen(shown(TOPIC, overrides), names):
        setting = TOPIC.get(name)
        if setting is None:
            described.append(undefined(name, (Synonym(name, None, FROM_TOPIC),)))
            continue
        value = setting.show(settings.of_topic(name, overrides))
        stand_in = setting.stand_in
        synonyms = broker_synonyms(settings, stand_in) if stand_in else ()
        if name in overrides:
            synonyms = (Synonym(name, value, FROM_TOPIC), *synonyms)
        described.append(defined(setting, value, synonyms))
    return described


def describe_broker(
    settings: BrokerSettings, names: Collection[str] | None = None
) -> list[Described]:
    """Describe the settings of this broker, all or those named."""
    given = {**settings.static, **settings.cluster, **settings.own}
    described = []
    for name in chosen(shown(BROKER, given), names):
        synonyms = broker_synonyms(settings, name)
        setting = BROKER.get(without_listener(name))
        if setting is None:
            described.append(undefined(name, synonyms))
            continue
        value = setting.show(settings[name]) if name in BROKER else given[name]
        read_only = name not in DYNAMIC
        described.append(defined(setting, value, synonyms, read_only=read_only)._replace(name=name))
    return described


def describe_cluster(
    settings: BrokerSettings, names: Collection[str] | None = None
) -> list[Described]:
    """Describe what was set at run time for all brokers, all or those named."""
    described = []
    for name in chosen(sorted(settings.cluster), names):
        text = settings.cluster[name]
        setting = BROKER.get(name)
        if setting is None:
            described.append(undefined(name, (Synonym(name, None, FROM_CLUSTER),)))
            continue
        synonyms = (Synonym(name, None if setting.sensitive else text, FROM_CLUSTER),)
        described.append(defined(setting, text, synonyms, read_only=name not in DYNAMIC))
    return described


def describe_group(
    settings: BrokerSettings,
    overrides: Mapping[str, str],
    names: Collection[str] | None = None,
) -> list[Described]:
    """Describe a group's settings, all or those named."""
    described = []
    for name in chosen(sorted(GROUP), names):
        setting = GROUP[name]
        if setting.stand_in:
            value = setting.show(settings[setting.stand_in])
            synonyms = broker_synonyms(settings, setting.stand_in)
        else:
            value = setting.show(setting.default)
            synonyms = (Synonym(name, value, FROM_DEFAULT),)
        if name in overrides:
            value = overrides[name]
            synonyms = (Synonym(name, value, FROM_GROUP), *synonyms)
        described.append(defined(setting, value, synonyms))
    return described


def describe_client_metrics(
    overrides: Mapping[str, str], names: Collection[str] | None = None
) -> list[Described]:
    """Describe a subscription to the metrics of clients, all of it or what is named."""
    described = []
    for name in chosen(sorted(CLIENT_METRICS), names):
        setting = CLIENT_METRICS[name]
        given = name in overrides
        value = setting.show(setting.read(overrides[name]) if given else setting.default)
        own = (Synonym(name, value, FROM_CLIENT_METRICS),) if given else ()
        described.append(defined(setting, value, own))
    return described


def shown(definitions: Mapping[str, Setting], given: Mapping[str, str]) -> list[str]:
    """Return the names to show: those meant for users, and whatever was given."""
    return sorted({name for name, each in definitions.items() if not each.hidden} | set(given))


def chosen(every: list[str], names: Collection[str] | None) -> list[str]:
    """Return the names that were asked for; all if none was."""
    return [name for name in every if name in names] if names else every


def broker_synonyms(settings: BrokerSettings, name: str) -> tuple[Synonym, ...]:
    """Return what decides a broker setting, the strongest first."""
    base = without_listener(name)
    same = broker_names(name) if base == name else (name, base)
    hidden = base not in BROKER or BROKER[base].sensitive
    found = [
        Synonym(each, None if hidden else layer[each], source)
        for layer, source in (
            (settings.own, FROM_BROKER),
            (settings.cluster, FROM_CLUSTER),
            (settings.static, FROM_FILE),
        )
        for each in same
        if each in layer
    ]
    found += [
        Synonym(each, None if hidden else settings.default(each), FROM_DEFAULT)
        for each in same
        if each in BROKER and BROKER[each].hidden != RUN_TIME and BROKER[each].default is not None
    ]
    # What stands before the name itself says the same in other units; it decides other names.
    while found and found[0].name != name:
        found.pop(0)
    return tuple(found)


def defined(
    setting: Setting,
    value: str | None,
    synonyms: tuple[Synonym, ...],
    *,
    read_only: bool = False,
) -> Described:
    """Describe a setting that has a definition."""
    return Described(
        setting.name,
        None if setting.sensitive else value,
        read_only,
        synonyms[0].source if synonyms else FROM_DEFAULT,
        setting.sensitive,
        synonyms,
        setting.type,
        setting.doc,
    )


def undefined(name: str, synonyms: tuple[Synonym, ...]) -> Described:
    """Describe a name that somebody gave and nobody knows."""
    return Described(name, None, True, synonyms[0].source, True, synonyms, UNKNOWN, None)
