"""The plot as text: what is higher is drawn higher."""

from examples.final_project.demo.showing import chart


def test_values_are_columns_of_eighths():
    assert chart([0, 15], height=2) == ["  ██", "▁▁██"]


def test_values_that_are_all_the_same_are_a_line():
    assert chart([5, 5], height=2) == ["    ", "▁▁▁▁"]


def test_no_values_are_no_lines():
    assert chart([]) == []
