"""The page is made of one run's results, as the run has left them."""

import pytest

from bench import page
from bench.case import Case
from bench.cases import CASES
from bench.contests import BROKERS, CONNECTORS, contest_of
from bench.results import Results


class Side:
    def __init__(self, name):
        self.name = name


def measure(case, results, *, rounds=3):
    """Add numbers that differ by time and side, of which the host took something."""
    sides = contest_of(case).names[: 1 if case.is_alone else None]
    results.begin(case, sides)
    for place, side in enumerate(sides):
        for time in range(rounds * case.turns):
            numbers = {bar.number: 1500 * (time + place + 1) for bar in case.bars}
            results.add(case, Side(side), numbers | {"stolen": 0.01 * time})


@pytest.fixture
def results():
    found = Results({"date": "2026-11-19", "Strom": "1a2b3c"})
    for case in CASES:
        measure(case, found)
    return found


def test_a_page_comes_from_what_a_run_has_left(results, tmp_path, monkeypatch):
    path = tmp_path / "setup" / "results.json"
    results.write(path)
    monkeypatch.setattr(page, "PATH", path)
    monkeypatch.setattr(page, "DOCS", tmp_path)
    page.main()
    text = (tmp_path / "benchmarks.md").read_text()
    assert "- date: 2026-11-19\n- Strom: 1a2b3c\n- rounds: 3\n- taken by the host: Strom " in text
    assert "| OffsetCommit, 10 consumers | requests/s | 3,000 (1,500 to 4,500) | 4,500 " in text
    assert all(f"| {case.name} |" in text for case in CASES)
    assert "<svg" in (tmp_path / "benchmarks.svg").read_text()


def test_a_part_of_the_cases_makes_no_page(results, tmp_path, monkeypatch):
    monkeypatch.setattr(page, "PATH", tmp_path / "results.json")
    monkeypatch.setattr(page, "DOCS", tmp_path)
    with pytest.raises(SystemExit, match="run make bench"):
        page.main()
    del results.measured[CASES[-1].name]
    # A case whose run was cut off has one side only.
    results.measured[CASES[0].name]["Kafka"].clear()
    results.write(page.PATH)
    with pytest.raises(SystemExit, match=f"lacks 2 of {len(CASES)} cases"):
        page.main()
    assert list(tmp_path.iterdir()) == [page.PATH]


def test_the_page_tells_what_the_host_took(results):
    (case,) = (each for each in CASES if each.group == "offsets")
    assert results.stolen([case]) == "Strom 1.0% (up to 2%), Kafka 1.0% (up to 2%)"
    for side in results.measured[case.name].values():
        for each in side:
            each["stolen"] = None
    assert results.stolen([case]) == "not told"


def test_the_page_tells_how_many_rounds_there_were(results):
    again = next(each for each in CASES if each.turns > 1)
    measure(again, results, rounds=2)
    assert results.rounds([again]) == "2"
    assert results.rounds(CASES) == "2 to 3"


def test_a_case_that_is_alone_is_measured_on_one_side():
    case = Case("case", "spark", None, (), is_alone=True)
    results = Results({})
    results.begin(case, CONNECTORS.names[:1])
    assert not results.wants(case, Side(CONNECTORS.names[1]))
    assert results.of([case]) == []
    assert contest_of(case) is CONNECTORS
    assert contest_of(Case("case", "latency", None, ())) is BROKERS
