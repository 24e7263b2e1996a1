"""InitProducerId: what is wrong with a request is told by whoever is asked."""

import pytest


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
@pytest.mark.parametrize("version", [0, 5])
def test_a_bad_time_out_is_told_by_who_is_no_coordinator(raw, name, timeout_ms, version):
    """As in Kafka; here no coordinator is begun yet, for nobody has asked who it is."""
    asked = {"transactional_id": name, "transaction_timeout": timeout_ms}
    nobody = {"producer_id": -1, "producer_epoch": -1}
    told = raw.ask("init_producer_id", version, asked | nobody)
    assert told["error_code"] == "invalid_transaction_timeout"
    good = raw.ask("init_producer_id", version, asked | nobody | {"transaction_timeout": 900_000})
    assert good["error_code"] == "not_coordinator"


def test_an_empty_transactional_id_is_told_before_a_bad_time_out(raw):
    asked = {"transactional_id": "", "transaction_timeout": -1}
    told = raw.ask("init_producer_id", 5, asked | {"producer_id": -1, "producer_epoch": -1})
    assert told["error_code"] == "invalid_request"
