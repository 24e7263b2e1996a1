"""Leader epochs: where each leader began, and where the log of an epoch ends (DSK-12)."""

from strom.log.epochs import FILE_NAME, Epochs
from tests.log.making import new_disk


def epochs_with(*entries: tuple[int, int]) -> Epochs:
    epochs = Epochs(new_disk(), "/data")
    for entry in entries:
        epochs.assign(*entry)
    return epochs


def test_the_file_has_kafkas_form():
    epochs = epochs_with((3, 0), (5, 1280))
    assert epochs._disk.read(f"/data/{FILE_NAME}") == b"0\n2\n3 0\n5 1280\n"
    again = Epochs(epochs._disk, "/data")
    assert again.load()
    assert again.entries == epochs.entries


def test_an_epoch_in_which_nothing_was_written_gives_way():
    assert epochs_with((1, 0), (2, 10), (3, 10)).entries == ((1, 0), (3, 10))


def test_a_known_or_older_epoch_changes_nothing():
    assert epochs_with((4, 0), (4, 7), (3, 9)).entries == ((4, 0),)


def test_the_end_of_an_epoch_is_the_beginning_of_the_next():
    epochs = epochs_with((2, 0), (4, 10), (7, 30))
    assert epochs.end_offset_for(7, 55) == (7, 55)
    assert epochs.end_offset_for(4, 55) == (4, 30)
    assert epochs.end_offset_for(5, 55) == (4, 30)
    assert epochs.end_offset_for(3, 55) == (2, 10)
    assert epochs.end_offset_for(1, 55) == (1, 0)
    assert epochs.end_offset_for(8, 55) == (-1, -1)
    assert epochs.end_offset_for(-1, 55) == (-1, -1)
    assert epochs_with().end_offset_for(0, 55) == (-1, -1)


def test_an_offset_has_the_epoch_that_began_last_before_it():
    epochs = epochs_with((2, 5), (4, 10))
    assert [epochs.epoch_of(offset) for offset in (4, 5, 9, 10, 99)] == [-1, 2, 2, 4, 4]


def test_epochs_are_cut_at_both_ends():
    epochs = epochs_with((2, 0), (4, 10), (7, 30))
    epochs.truncate_from_end(30)
    assert epochs.entries == ((2, 0), (4, 10))
    epochs.truncate_from_start(12)
    assert epochs.entries == ((4, 12),)
    epochs.truncate_from_start(11)
    assert epochs.entries == ((4, 12),)


def test_a_missing_or_empty_file_is_told():
    epochs = epochs_with()
    assert not epochs.load()
    epochs._disk.write(epochs.path, b"")
    assert not epochs.load()
    epochs.write()
    assert epochs.load()
