import pytest
from hypothesis import given
from hypothesis import strategies as st

from strom.cli.quantity import read_size, size_text
from strom.cli.sizing import Volume, brokers_needed, divisors, partitions_needed, well_divisible

TERABYTE = 10**12


def test_partitions_follow_the_slower_side():
    """TOP-20: max(t/c, t/p)."""
    assert partitions_needed(100, per_producer=20, per_consumer=5) == 20
    assert partitions_needed(100, per_producer=5, per_consumer=20) == 20
    assert partitions_needed(101, per_producer=20, per_consumer=5) == 21
    assert partitions_needed(1, per_producer=20, per_consumer=5) == 1


@given(st.integers(1, 10_000))
def test_a_well_divisible_number_is_enough_and_no_prime(partitions):
    """TOP-20."""
    chosen = well_divisible(partitions)
    assert chosen >= partitions
    assert chosen <= 2 or len(divisors(chosen)) > 2


def test_seven_becomes_twelve():
    """TOP-20: 12 is shared evenly by 1, 2, 3, 4, 6 and 12."""
    assert well_divisible(7) == 12
    assert divisors(12) == [1, 2, 3, 4, 6, 12]


@pytest.mark.parametrize(("replication_factor", "brokers"), [(1, 4), (3, 11)])
def test_the_books_example_of_a_terabyte_a_day(replication_factor, brokers):
    """BRK-24: 7 TB need 4 brokers of 2 TB; three copies are 21 TB and need 11."""
    assert brokers_needed(Volume(TERABYTE, 7, replication_factor), 2 * TERABYTE) == brokers


def test_every_copy_needs_a_broker_of_its_own():
    assert brokers_needed(Volume(1, 1, 3), TERABYTE) == 3


@pytest.mark.parametrize(
    ("text", "size"), [("1TB", 1e12), ("1.5 gb", 1.5e9), ("512", 512), ("2KiB", 2048)]
)
def test_sizes_are_read(text, size):
    assert read_size(text) == size


@pytest.mark.parametrize("text", ["", "TB", "-1", "1 parsec", "1,5GB"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(ValueError, match="is no size"):
        read_size(text)


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 KB"), (2.1e13, "21 TB")]
)
def test_sizes_are_said(size, text):
    assert size_text(size) == text


def test_the_command_answers_both_questions(strom):
    result = strom("topic", "size", "--per-day", "1TB", "--throughput", "70MB")
    assert result.exit_code == 0
    assert "partitions: 12" in result.stdout
    assert "brokers:    11  (21 TB on disks of 2TB)" in result.stdout


def test_the_command_guesses_twelve(strom):
    assert "partitions: 12" in strom("topic", "size").stdout


@pytest.mark.parametrize("option", ["--throughput", "--per-day"])
def test_a_size_that_is_none_is_a_wrong_use(strom, option):
    result = strom("topic", "size", option, "lots")
    assert result.exit_code == 2
    assert "'lots' is no size" in result.stderr


def test_dividing_by_nothing_is_a_wrong_use(strom):
    result = strom("topic", "size", "--throughput", "1MB", "--per-consumer", "0")
    assert result.exit_code == 2
    assert "more than nothing" in result.stderr
