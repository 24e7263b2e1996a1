"""The site's data and pages: a function of the seed and the time (USE-02)."""

from examples.final_project.scraper import tables
from examples.final_project.scraper.sources import site as site_source
from examples.final_project.site import flights, pages

NOW_MS = 1_800_000_000_000


def test_use_02_the_same_seed_tells_the_same_flights():
    assert pages.board(7, NOW_MS).html == pages.board(7, NOW_MS).html
    assert pages.board(7, NOW_MS).html != pages.board(8, NOW_MS).html


def test_a_flight_goes_from_scheduled_to_landed():
    each = next(f for f in flights.board(7, NOW_MS) if not f.scrubbed)
    times = range(each.launch_ms - 1, each.launch_ms + flights.FLIGHT_MS + 1, 1000)
    seen = list(dict.fromkeys(flights.status(each, at_ms)[0] for at_ms in times))
    assert seen == ["scheduled", "ascent", "orbit"]
    assert flights.status(each, each.launch_ms + flights.FLIGHT_MS)[0] == "landed"


def test_measurements_of_two_halves_are_those_of_the_whole():
    middle_ms = NOW_MS + 30_001
    whole = flights.measurements(7, NOW_MS, NOW_MS + 60_000)
    first = flights.measurements(7, NOW_MS, middle_ms)
    assert whole == first + flights.measurements(7, middle_ms, NOW_MS + 60_000)
    assert len(whole) > 100


def test_some_engines_run_hot():
    hot = [m for m in flights.measurements(7, NOW_MS, NOW_MS + 600_000) if m.engine_celsius > 3000]
    assert hot


def test_every_page_is_read_by_its_job():
    for job in site_source.of("http://site"):
        page = pages.PAGES["/" + job.name](7, NOW_MS)
        rows = tables.rows(page.html, job.reads.table, job.reads.columns)
        assert [job.reads.value(row) for row in rows]


def test_a_page_has_its_tag_until_its_data_changes():
    even_ms = NOW_MS - NOW_MS % flights.MEASURE_EVERY_MS
    tags = [pages.telemetry(7, even_ms + late).etag for late in (0, 1000, 1999, 2000)]
    assert tags[0] == tags[1] == tags[2] != tags[3]
