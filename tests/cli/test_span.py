import pytest

from strom.cli.span import Bounds, Kind, Point, offset_of, read_point

BOUNDS = Bounds(10, 100)


@pytest.mark.parametrize(
    ("text", "point"),
    [
        ("beginning", Point(Kind.BEGINNING)),
        ("end", Point(Kind.END)),
        ("17", Point(Kind.OFFSET, 17)),
        ("-5", Point(Kind.LAST, 5)),
        ("@1700000000000", Point(Kind.TIME, 1700000000000)),
        ("2026-11-16T10:30+01:00", Point(Kind.TIME, 1794821400000)),
        # No record has such a time, and to a broker a number below 0 is no time at all.
        ("1969-12-31T23:59:59.999+00:00", Point(Kind.TIME, 0)),
        ("0001-01-01T00:00+12:00", Point(Kind.TIME, 0)),
        ("@99999999999999999999", Point(Kind.TIME, 2**63 - 1)),
    ],
)
def test_points_are_read(text, point):
    assert read_point(text) == point


@pytest.mark.parametrize("text", ["", "yesterday", "5-", "@", "--5", "1.5"])
def test_what_is_no_point_is_refused_with_what_there_is(text):
    with pytest.raises(ValueError, match="beginning, end, an offset"):
        read_point(text)


@pytest.mark.parametrize(
    ("point", "offset"),
    [
        (Point(Kind.BEGINNING), 10),
        (Point(Kind.END), 100),
        (Point(Kind.OFFSET, 17), 17),
        (Point(Kind.LAST, 5), 95),
        (Point(Kind.LAST, 1000), 10),
    ],
)
def test_a_point_has_an_offset(point, offset):
    assert offset_of(point, BOUNDS, None) == offset


def test_a_time_is_the_first_record_then_or_the_end():
    """CON-13."""
    assert offset_of(Point(Kind.TIME, 1), BOUNDS, 42) == 42
    assert offset_of(Point(Kind.TIME, 1), BOUNDS, None) == 100
