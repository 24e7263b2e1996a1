"""Values in force: file, run time, topics (BRK-02, BRK-03, BRK-11, BRK-21, TOP-18, RET-01…05)."""

import pytest

from strom.log.config import LogConfig
from strom.metadata.settings import BrokerSettings, SettingsError, load

HOUR_MS = 3_600_000


def test_defaults_start_a_single_node():
    loaded = load({})
    assert loaded.settings.node_id == 1
    assert loaded.settings.roles == {"broker", "controller"}
    assert loaded.settings.log_dirs == ("/tmp/kafka-logs",)
    assert loaded.settings.metadata_log_dir == "/tmp/kafka-logs"
    assert loaded.notes == ()


def test_values_have_the_type_of_their_setting():
    settings = BrokerSettings({"log.dirs": "/a, /b", "broker.rack": " west "})
    assert settings["num.partitions"] == 1
    assert settings.number("message.max.bytes") == 1_048_588
    assert settings.flag("auto.create.topics.enable") is True
    assert settings.text("broker.rack") == "west"
    assert settings.text("metadata.log.dir") is None
    assert settings.items("log.dirs") == settings.log_dirs == ("/a", "/b")
    assert settings.items("advertised.listeners") == ()
    assert settings.ratio("log.cleaner.min.cleanable.ratio") == 0.5
    assert BrokerSettings({"metadata.log.dir": "/m"}).metadata_log_dir == "/m"


def test_an_unknown_name_is_a_mistake_of_the_code():
    with pytest.raises(KeyError):
        BrokerSettings()["num.partition"]


def test_what_is_set_for_the_broker_goes_before_what_is_set_for_all_and_the_file():
    static = {"log.retention.ms": "1", "num.partitions": "7"}
    settings = BrokerSettings(static, own={"log.retention.ms": "3"}, cluster={})
    assert settings["log.retention.ms"] == 3
    assert BrokerSettings(static, {}, {"log.retention.ms": "2"})["log.retention.ms"] == 2
    both = settings.with_dynamic({"log.retention.ms": "3"}, {"log.retention.ms": "2"})
    assert both["log.retention.ms"] == 3
    assert both.with_dynamic({}, {})["log.retention.ms"] == 1
    assert both["num.partitions"] == 7


def test_a_change_tells_what_changed():
    before = BrokerSettings()
    after = before.with_dynamic({"log.retention.ms": "5"}, {"max.connections": "10"})
    assert after.changed_from(before) == {"log.retention.ms", "max.connections"}
    assert after.changed_from(after) == frozenset()


def test_what_cannot_be_followed_at_run_time_is_left_aside():
    settings = BrokerSettings({}, {"num.partitions": "3", "max.connections": "many"})
    assert settings["num.partitions"] == 1
    assert settings["max.connections"] == 2**31 - 1
    assert settings.ignored.keys() == {"num.partitions", "max.connections"}


@pytest.mark.parametrize(
    ("static", "expected_ms"),
    [
        ({}, 168 * HOUR_MS),
        ({"log.retention.hours": "24"}, 24 * HOUR_MS),
        ({"log.retention.hours": "24", "log.retention.minutes": "5"}, 300_000),
        ({"log.retention.minutes": "5", "log.retention.ms": "7"}, 7),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.ms": "-1"}, -1),
    ],
)
def test_retention_may_be_given_in_three_units(static, expected_ms):
    assert BrokerSettings(static).log_config().retention_ms == expected_ms


def test_a_topic_goes_before_the_broker_and_the_broker_before_the_default():
    settings = BrokerSettings({"log.segment.bytes": "2000000", "log.roll.hours": "1"})
    config = settings.log_config({"segment.bytes": "3000000", "flush.messages": "1"})
    assert config.segment_bytes == 3_000_000
    assert config.segment_ms == HOUR_MS
    assert config.flush_messages == 1
    assert settings.log_config().segment_bytes == 2_000_000
    changed = settings.with_dynamic({}, {"log.segment.bytes": "4000000"})
    assert changed.log_config().segment_bytes == 4_000_000


@pytest.mark.parametrize(
    ("policy", "delete", "compact"),
    [("delete", True, False), ("compact", False, True), ("compact,delete", True, True), ("", 0, 0)],
)
def test_cleanup_policies(policy, delete, compact):
    config = BrokerSettings().log_config({"cleanup.policy": policy})
    assert (config.cleanup_delete, config.cleanup_compact) == (delete, compact)


def test_ret_01_the_brokers_policy_is_that_of_topics_without_one():
    settings = BrokerSettings({"log.cleanup.policy": "compact"})
    assert settings.log_config().cleanup_compact
    assert not settings.log_config().cleanup_delete
    assert settings.log_config({"cleanup.policy": "delete"}).cleanup_delete


def test_topics_that_agree_share_their_configuration():
    settings = BrokerSettings()
    assert settings.log_config({"retention.ms": "5"}) is settings.log_config({"retention.ms": "5"})
    assert settings.log_config() is settings.log_config({})


def test_the_memory_for_configurations_is_bounded():
    settings = BrokerSettings()
    for number in range(2100):
        assert settings.log_config({"retention.ms": str(number)}).retention_ms == number
    assert len(settings._log_configs) <= 1000


def test_a_topic_value_that_cannot_be_read_falls_back_to_the_brokers():
    assert BrokerSettings().log_config({"retention.ms": "soon"}) == LogConfig()


def test_a_segment_may_be_small_for_tests():
    assert BrokerSettings().log_config({"internal.segment.bytes": "100"}).segment_bytes == 100


def test_producers_expire_as_the_broker_says():
    assert (
        BrokerSettings({"producer.id.expiration.ms": "5"}).log_config().producer_expiration_ms == 5
    )


def test_min_insync_replicas_of_a_topic():
    settings = BrokerSettings({"min.insync.replicas": "2"})
    assert settings.min_insync_replicas() == 2
    assert settings.min_insync_replicas({"min.insync.replicas": "3"}) == 3


def test_the_old_name_of_the_id_is_taken_with_a_note():
    loaded = load({"broker.id": "7"})
    assert loaded.settings.node_id == 7
    assert loaded.notes == ("broker.id is taken as node.id: write node.id=7 instead",)
    assert load({"broker.id": "7", "node.id": " 7"}).settings.node_id == 7
    assert load({"node.id": "7"}).settings["broker.id"] == 7


def test_the_keys_of_the_book_are_answered_with_what_to_do():
    notes = load(
        {"zookeeper.connect": "localhost:2181", "broker.id.generation.enable": "false"}
    ).notes
    assert "give every node its own node.id" in notes[0]
    assert "there is no ZooKeeper" in notes[1]
    assert "remove it" in notes[1]
    assert "there is no ZooKeeper" in load({"zookeeper.set.acl": "true"}).notes[0]


def test_an_unknown_key_is_warned_about_with_the_nearest_name():
    (note,) = load({"log.retention.hour": "3"}).notes
    assert (
        note == "unknown setting log.retention.hour is ignored: did you mean log.retention.hours?"
    )
    assert load({"xyzzy": "3"}).notes == ("unknown setting xyzzy is ignored",)


def test_keys_for_plug_ins_are_not_warned_about():
    assert load({"rsm.config.bucket": "b"}).notes == ()


def test_a_listener_may_have_a_limit_of_its_own():
    own = "listener.name.plaintext.max.connections"
    loaded = load({own: "5"})
    assert loaded.notes == ()
    settings = loaded.settings
    assert settings.number_for("PLAINTEXT", "max.connections") == 5
    assert settings.number_for("OTHER", "max.connections") == settings["max.connections"]
    changed = settings.with_dynamic({own: "6"}, {})
    assert changed.number_for("PLAINTEXT", "max.connections") == 6
    assert changed.ignored == {}
    with pytest.raises(SettingsError, match=r"max\.connections"):
        load({own: "many"})


@pytest.mark.parametrize(
    "key",
    [
        "listener.name.plaintext.ssl.keystore.location",
        "listener.name.plaintext.max.connections.per.ip",
        "listener.name.nobody.max.connections",
    ],
)
def test_what_does_nothing_for_a_listener_is_told(key):
    (note,) = load({key: "5"}).notes
    assert note == f"without effect here, see docs/configuration.md: {key}"
    assert key in BrokerSettings({}, {key: "5"}).ignored or key.endswith("max.connections")


def test_settings_without_effect_are_told_in_one_line():
    notes = load({"num.io.threads": "8", "num.network.threads": "3", "num.partitions": "2"}).notes
    assert notes == (
        "without effect here, see docs/configuration.md: num.io.threads, num.network.threads",
    )
    (note,) = load({"leader.replication.throttled.rate": "8"}).notes[:1]
    assert "set at run time" in note


@pytest.mark.parametrize(
    ("static", "message"),
    [
        (
            {"num.partitions": "abc"},
            "Invalid value abc for configuration num.partitions: Not a number of type INT",
        ),
        (
            {"broker.id": "1", "node.id": "2"},
            "You must set `node.id` to the same value as `broker.id`.",
        ),
        ({"broker.id": "-1"}, "set node.id to a number from 0 up"),
        ({"process.roles": "broker"}, "set process.roles=broker,controller, or leave it out"),
        ({"controller.quorum.voters": "2@a:1"}, "the node id 1 must be included"),
        ({"controller.quorum.voters": "1@a:1,2@b:1"}, "name only this one, or leave it out"),
        ({"log.roll.ms": "0"}, "log.roll.ms must be greater than or equal to 1"),
        ({"log.roll.jitter.ms": "-1"}, "log.roll.jitter.ms must be greater than or equal to 0"),
        ({"log.retention.ms": "0"}, "log.retention.ms must be unlimited"),
        ({"log.retention.hours": "0"}, "log.retention.ms must be unlimited"),
        ({"log.cleaner.dedupe.buffer.size": "1"}, "at least 1MB per cleaner thread"),
        ({"replica.socket.timeout.ms": "1"}, "should always be at least replica.fetch.wait.max.ms"),
        ({"replica.lag.time.max.ms": "1"}, "less than or equal to replica.lag.time.max.ms"),
        ({"broker.heartbeat.interval.ms": "5000"}, "half of the broker.session.timeout.ms"),
        ({"queued.max.request.bytes": "1"}, "larger or equal to socket.request.max.bytes"),
        ({"max.connections.per.ip": "0"}, "can be set to zero only if"),
        ({"connections.max.idle.ms": "50"}, "less than connections.max.idle.ms"),
        ({"cordoned.log.dirs": "*,/a"}, "must not contain other values"),
        ({"cordoned.log.dirs": "/a", "log.dirs": "/b"}, "Missing entries : /a"),
        ({"max.connections.per.ip.overrides": "localhost"}, "write host:count"),
        ({"log.dirs": ""}, "must not be empty"),
        (
            {"group.coordinator.rebalance.protocols": "consumer"},
            "Disabling the 'classic' protocol is not supported.",
        ),
        (
            {"group.consumer.assignors": "uniform,rnage"},
            "Class rnage cannot be found: group.consumer.assignors takes uniform and range",
        ),
        (
            {"group.streams.num.standby.replicas": "3"},
            "group.streams.num.standby.replicas must be less than or equal to "
            "group.streams.max.standby.replicas",
        ),
    ],
)
def test_a_mistake_is_one_line_that_says_what_to_do(static, message):
    with pytest.raises(SettingsError) as raised:
        load(static)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("kind", ["consumer", "share", "streams"])
@pytest.mark.parametrize(
    "what", ["heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms"]
)
def test_a_time_of_groups_lies_within_its_bounds(kind, what):
    least, value, most = (f"group.{kind}.{bound}{what}" for bound in ("min.", "", "max."))
    bounds = {least: "20", value: "20", most: "20"}
    # A session is always longer than the beats in it; here it is out of the way.
    wide = {f"group.{kind}.{bound}session.timeout.ms": "60000" for bound in ("min.", "", "max.")}
    beat = {f"group.{kind}.{bound}heartbeat.interval.ms": "1" for bound in ("min.", "", "max.")}
    around = {**wide, **beat, **bounds}
    load(around)
    for other, message in (
        ({least: "21"}, f"{most} must be greater than or equal to {least}"),
        ({value: "19"}, f"{value} must be greater than or equal to {least}"),
        ({value: "21"}, f"{value} must be less than or equal to {most}"),
    ):
        with pytest.raises(SettingsError) as raised:
            load({**around, **other})
        assert str(raised.value) == message


@pytest.mark.parametrize("kind", ["consumer", "share", "streams"])
def test_a_session_of_groups_outlasts_a_heartbeat(kind):
    beat, session = f"group.{kind}.heartbeat.interval.ms", f"group.{kind}.session.timeout.ms"
    most = {f"group.{kind}.max.heartbeat.interval.ms": "45000"}
    load({**most, beat: "44999"})
    with pytest.raises(SettingsError) as raised:
        load({**most, beat: "45000"})
    assert str(raised.value) == f"{beat} must be less than {session}"


def test_a_node_may_name_itself_as_the_only_voter():
    assert (
        load({"node.id": "3", "controller.quorum.voters": "3@localhost:9093"}).settings.node_id == 3
    )
