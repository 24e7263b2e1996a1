"""What is told of a part that does not work, and of a project where nothing arrives (PRJ-09)."""

import logging
import os
import time
from collections import namedtuple

import psycopg
import pytest

from examples.final_project import part, watch
from examples.final_project.database.migrate import migrate
from examples.final_project.database.server import LocalServer
from examples.final_project.deployment import health
from examples.final_project.place import Place
from examples.final_project.settings import load
from tests import nodes

pytestmark = pytest.mark.slow

HOUR_SECONDS = 3600
PROGRESS = """
INSERT INTO flights.sink_progress
VALUES (%s, 'telemetry', %s, 1, now() - %s * '1 s'::interval)
"""


@pytest.fixture(scope="module")
def server():
    with LocalServer(settings=None) as started:
        migrate(started.url())
        yield started


@pytest.fixture
def project(server, tmp_path):
    """A place and settings of a project whose site and broker are not there."""
    ports = {"SITE_PORT": nodes.free_port(), "BROKER_PORT": nodes.free_port()}
    given = {**ports, "BROKER_HTTP_PORT": nodes.free_port(), "DATABASE_URL": server.url()}
    environment = {f"STROM_PROJECT_{name}": str(value) for name, value in given.items()}
    place = Place(tmp_path)
    place.run.mkdir()
    with psycopg.connect(server.url()) as connection:
        connection.execute("DELETE FROM flights.sink_progress")
    return place, load(place.settings, environment)


def started(place, name, seconds_ago):
    """Note that a part was started then."""
    at = time.time() - seconds_ago
    part.lock_file(place, name).touch()
    os.utime(part.lock_file(place, name), (at, at))


def progressed(server, seconds_ago, partition=0, sink=health.FLOW_SINK):
    with psycopg.connect(server.url()) as connection:
        connection.execute(PROGRESS, [sink, partition, seconds_ago])


def test_prj_09_the_flow_has_stopped_when_nothing_new_has_come_for_a_while(project, server):
    place, settings = project
    started(place, "processing", 2 * HOUR_SECONDS)
    said = "nothing new has come to the database for 120 minutes"
    assert health.quiet(place, settings) == said
    # What goes on arriving from elsewhere is not the flow.
    progressed(server, 1, sink="final-project-metrics")
    assert health.quiet(place, settings) == said
    progressed(server, HOUR_SECONDS)
    assert health.quiet(place, settings) == "nothing new has come to the database for 60 minutes"
    started(place, "processing", 10)
    assert health.quiet(place, settings) is None
    started(place, "processing", 2 * HOUR_SECONDS)
    progressed(server, 10, partition=1)
    assert health.quiet(place, settings) is None


def test_prj_09_how_far_a_sink_is_says_when_it_got_there(server):
    sink = "any"
    progressed(server, HOUR_SECONDS, sink=sink)
    with psycopg.connect(server.url()) as connection:
        connection.execute(
            "UPDATE flights.sink_progress SET end_offset = 2 WHERE sink = %s", [sink]
        )
        asked = "SELECT now() - written_at FROM flights.sink_progress WHERE sink = %s"
        assert connection.execute(asked, [sink]).fetchone()[0].total_seconds() == 0


def test_prj_09_a_part_that_serves_nothing_is_ill_for_a_reason_in_one_line(project):
    place, settings = project
    assert health.ailment("database", place, settings) is None
    for name in ("site", "broker"):
        assert "refused" in health.ailment(name, place, settings)


def test_prj_09_a_part_that_works_has_a_pulse(project):
    place, settings = project
    name = "scraper"
    assert health.ailment(name, place, settings) == "it has not begun to work"
    started(place, name, 100)
    assert health.ailment(name, place, settings) == "it has not begun to work"
    part.Part(name, place, settings, 0).pulse()
    assert health.ailment(name, place, settings) is None
    old = time.time() - 90
    os.utime(part.pulse_file(place, name), (old, old))
    assert health.ailment(name, place, settings) == "it has done nothing for 90 s"
    # That of its last life does not count.
    started(place, name, 1)
    assert health.ailment(name, place, settings) == "it has not begun to work"


def test_prj_09_the_watch_sees_the_parts_and_the_flow(project):
    place, settings = project
    looked = watch.looked(part.Part("watch", place, settings, 0))
    # The database is somebody else's here: no part of it runs.
    assert list(looked) == ["site", "broker", "processing", "scraper", "archive", "flow", "disk"]
    assert all(ailment for name, ailment in looked.items() if name != "disk")


def test_mon_04_a_disk_that_is_too_full_is_told(project, monkeypatch):
    place, settings = project
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(health.shutil, "disk_usage", lambda _: usage(1000, 600, 400))
    assert health.disk(place, settings) is None
    monkeypatch.setattr(health.shutil, "disk_usage", lambda _: usage(1000, 611, 389))
    assert health.disk(place, settings) == "61 % of the disk is used, more than 60 %"


def test_prj_09_the_watch_says_what_has_changed_and_says_it_once(caplog):
    known = {}
    with caplog.at_level(logging.WARNING):
        for found in ({"a": "it is down", "b": None}, {"a": "still", "b": None}, {"a": None}):
            watch.tell(known, found)
    assert caplog.messages == ["a: it is down", "a: well again"]
