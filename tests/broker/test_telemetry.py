"""Clients' metrics: who is asked for what, who may push when, what is shown.

The order of refusals and the numbers are those that Apache Kafka 4.3.1 gave. Row: MON-01.
"""

from uuid import UUID

import pytest
from immutables import Map

from strom.broker.telemetry import (
    SERIES_PER_CLIENT_MAX,
    Client,
    Sample,
    Telemetry,
)
from strom.wire.errors import ErrorCode, KafkaError

ONE, TWO = UUID(int=101), UUID(int=102)
NOW = 1_700_000_000_000


def client(instance_id=ONE, name="flug", software="librdkafka"):
    return Client(str(instance_id), name, software, "2.0", "127.0.0.1", "5000")


def subscribed(**resources):
    telemetry = Telemetry()
    telemetry.follow(configs(**resources))
    return telemetry


def configs(**resources):
    return Map({(16, name): Map(config) for name, config in resources.items()})


def refusal(call, *given, **named):
    with pytest.raises(KafkaError) as caught:
        call(*given, **named)
    return caught.value.code


ALL = {"metrics": "*", "interval.ms": "1000"}


def test_without_a_subscription_nothing_is_wanted_and_the_client_asks_every_five_minutes():
    wanted = Telemetry().ask(ONE, client(), NOW)
    assert wanted.metrics == ()
    assert wanted.interval_ms == 300_000


def test_subscriptions_add_up_to_all_metrics_at_the_shortest_interval():
    telemetry = subscribed(
        a={"metrics": "org.a,org.b", "interval.ms": "5000"}, b={"metrics": "org.c"}
    )
    wanted = telemetry.ask(ONE, client(), NOW)
    assert wanted.metrics == ("org.a", "org.b", "org.c")
    assert wanted.interval_ms == 5000


def test_a_star_stands_for_all():
    telemetry = subscribed(a={"metrics": "org.a"}, b=ALL)
    assert telemetry.ask(ONE, client(), NOW).metrics == ("*",)


def test_a_subscription_means_only_the_clients_that_match_it_wholly():
    telemetry = subscribed(a=ALL | {"match": "client_software_name=librd.*,client_id=flug"})
    assert telemetry.ask(ONE, client(), NOW).metrics == ("*",)
    assert telemetry.ask(TWO, client(TWO, name="flugdaten"), NOW).metrics == ()


def test_a_pattern_that_only_java_reads_means_nobody():
    telemetry = subscribed(a=ALL | {"match": "client_id=(?<name>x)++["})
    assert telemetry.ask(ONE, client(), NOW).metrics == ()


def test_two_clients_have_two_ids_and_one_has_the_same_again():
    telemetry = subscribed(a=ALL)
    first = telemetry.ask(ONE, client(), NOW).subscription_id
    assert first != telemetry.ask(TWO, client(TWO), NOW).subscription_id
    assert first == telemetry.ask(ONE, client(), NOW + 1000).subscription_id
    assert -(2**31) <= first < 2**31


def test_who_asks_again_too_early_is_throttled():
    telemetry = subscribed(a=ALL)
    telemetry.ask(ONE, client(), NOW)
    code = refusal(telemetry.ask, ONE, client(), NOW + 999)
    assert code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    telemetry.ask(ONE, client(), NOW + 1000)


def push(telemetry, subscription_id, *, now_ms=NOW, ending=False):
    telemetry.admit(ONE, client(), subscription_id, ending=ending, now_ms=now_ms)


def test_a_client_pushes_at_once_and_then_once_an_interval():
    telemetry = subscribed(a=ALL)
    wanted = telemetry.ask(ONE, client(), NOW)
    push(telemetry, wanted.subscription_id, now_ms=NOW + 1)
    code = refusal(push, telemetry, wanted.subscription_id, now_ms=NOW + 2)
    assert code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    push(telemetry, wanted.subscription_id, now_ms=NOW + 1001)


def test_the_last_push_may_be_early_but_is_the_last():
    telemetry = subscribed(a=ALL)
    wanted = telemetry.ask(ONE, client(), NOW)
    push(telemetry, wanted.subscription_id, now_ms=NOW + 1)
    push(telemetry, wanted.subscription_id, now_ms=NOW + 2, ending=True)
    code = refusal(push, telemetry, wanted.subscription_id, now_ms=NOW + 3, ending=True)
    assert code == ErrorCode.INVALID_REQUEST


def test_another_subscription_id_is_unknown_and_counts_as_a_push():
    telemetry = subscribed(a=ALL)
    wanted = telemetry.ask(ONE, client(), NOW)
    wrong = wanted.subscription_id ^ 1
    assert refusal(push, telemetry, wrong, now_ms=NOW + 1) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    again = refusal(push, telemetry, wanted.subscription_id, now_ms=NOW + 2)
    assert again == ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_a_client_that_never_asked_has_no_subscription():
    assert refusal(push, subscribed(a=ALL), 7) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID


def test_when_the_terms_change_the_old_id_is_unknown_and_the_client_may_ask_at_once():
    telemetry = subscribed(a=ALL)
    before = telemetry.ask(ONE, client(), NOW)
    telemetry.follow(configs(a={"metrics": "org.a", "interval.ms": "1000"}))
    code = refusal(push, telemetry, before.subscription_id, now_ms=NOW + 1)
    assert code == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    telemetry.follow(configs(a={"metrics": "org.b", "interval.ms": "1000"}))
    assert telemetry.ask(ONE, client(), NOW + 2).metrics == ("org.b",)


def shown(telemetry):
    return {
        (sample.name, sample.labels.get("topic")): sample.value
        for family in telemetry.collect()
        for sample in family.samples
        if "client_id" in sample.labels
    }


def known(telemetry):
    telemetry.ask(ONE, client(), NOW)
    return telemetry


def test_what_was_added_is_added_and_what_is_is_replaced():
    telemetry = known(Telemetry())
    topic = (("topic", "flug"),)
    for value in (3.0, 4.0):
        samples = (Sample("org.sent", topic, value, True), Sample("org.lag", (), value, False))
        telemetry.take(ONE, samples)
    assert shown(telemetry) == {("org_sent", "flug"): 7.0, ("org_lag", None): 4.0}


def test_a_client_has_only_so_many_series():
    telemetry = known(Telemetry())
    extra = 5
    samples = [Sample(f"m{n}", (), 1.0, False) for n in range(SERIES_PER_CLIENT_MAX + extra)]
    telemetry.take(ONE, samples)
    assert len(shown(telemetry)) == SERIES_PER_CLIENT_MAX
    assert telemetry.dropped_samples == extra


def test_a_series_is_told_from_others_by_so_much_text_only():
    telemetry = known(Telemetry())
    long = "x" * 1_000_000
    telemetry.take(ONE, [Sample(long, (), 1.0, False), Sample("m", (("key", long),), 1.0, False)])
    assert shown(telemetry) == {}
    assert telemetry.dropped_samples == 2


def test_a_client_that_has_ended_is_shown_no_more():
    telemetry = known(Telemetry())
    telemetry.take(ONE, [Sample("m", (), 1.0, False)])
    telemetry.forget(ONE)
    assert shown(telemetry) == {}
