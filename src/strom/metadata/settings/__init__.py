"""Every setting of a broker, a topic, a group: definitions, values in force, changes, descriptions.

    loaded = load({**read_properties(text), **read_overrides(["num.partitions=3"])})
    loaded.settings.number("num.partitions")
    loaded.settings.log_config({"retention.ms": "1000"})

Names, types, defaults and refusals are Apache Kafka 4.3's. The definitions lie in the modules named
after their subject; `catalogue` has them all by name.
"""
