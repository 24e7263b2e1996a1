"""A server that others have set up, known by its address only (PRJ-04, PRJ-07)."""

import subprocess
import sys

import psycopg
import pytest

from examples.final_project.database.addresses import (
    READER,
    WRITER,
    NoSuchRoleError,
    acting_as,
    shown,
)
from examples.final_project.database.migrate import migrate
from examples.final_project.database.server import LocalServer
from examples.final_project.database.settings import settings, settle
from examples.final_project.demo.__main__ import require_empty
from examples.final_project.demo.processes import NotReadyError

pytestmark = pytest.mark.slow

#: Nobody but the administrator is let in without a password.
GUARDED = "local all postgres trust\nlocal all all scram-sha-256\n"
PROGRESS = "INSERT INTO flights.sink_progress VALUES ('s', 't', 0, 1)"


@pytest.fixture
def server():
    with LocalServer(settings=None) as started:
        yield started


def ask(url, query):
    with psycopg.connect(url) as connection:
        return connection.execute(query).fetchone()


def in_force(url):
    """The settings of the file, as the server has them, in the words of the file."""
    return {name: ask(url, f"SHOW {name}")[0] for name, _value in settings()}


def migrated(*arguments):
    command = [sys.executable, "-m", "examples.final_project.database.migrate", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def test_prj_07_the_settings_are_set_and_those_that_need_a_restart_are_named(server):
    before = in_force(server.url())
    said = migrated(server.url(), "--leave-settings")
    assert len(said) == 1
    assert in_force(server.url()) == before
    run, now, later, refused = migrated(server.url())
    assert run == "migrations run: none"
    assert "random_page_cost" in now
    assert (
        later == "settings in force after a restart of the server: max_connections, shared_buffers"
    )
    assert refused.endswith(": none")
    server.stop()
    server.start()
    assert in_force(server.url()) == dict(settings())
    assert settle(server.url()).after_restart == []


@pytest.fixture
def guarded(server):
    """The address of a database whose owner is no superuser, where everybody needs a password."""
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("CREATE ROLE owner LOGIN CREATEROLE PASSWORD 'secret'")
        connection.execute("CREATE DATABASE flights OWNER owner")
    (server.directory / "data" / "pg_hba.conf").write_text(GUARDED)
    server.stop()
    server.start()
    return f"postgresql://owner:secret@/flights?host={server.directory}"


def test_prj_04_the_roles_need_no_password_and_no_superuser(server, guarded):
    with pytest.raises(NoSuchRoleError):
        acting_as(guarded, WRITER)
    assert migrate(guarded)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(server.url("flights", WRITER))
    with psycopg.connect(acting_as(guarded, WRITER), autocommit=True) as writer:
        writer.execute("SELECT flights.ensure_telemetry_day('2030-01-01')")
        writer.execute(PROGRESS)
        assert writer.execute("SHOW lock_timeout").fetchone() == ("10s",)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            writer.execute("CREATE TABLE flights.mine ()")
    with psycopg.connect(acting_as(guarded, READER), autocommit=True) as reader:
        assert reader.execute("SELECT end_offset FROM flights.sink_progress").fetchone() == (1,)
        assert reader.execute("SHOW statement_timeout").fetchone() == ("30s",)
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            reader.execute(PROGRESS)
    assert settle(guarded).refused == list(dict(settings()))


def test_options_of_the_address_stay(server):
    migrate(server.url())
    given = server.url() + "&options=-c%20application_name%3Dmine"
    assert ask(acting_as(given, READER), "SHOW application_name") == ("mine",)


def test_what_is_shown_of_an_address_has_no_password():
    assert "secret" not in shown("postgresql://owner:secret@db.example/flights")
    assert "owner" in shown("postgresql://owner:secret@db.example/flights")


def test_the_demo_takes_no_database_that_holds_something(server):
    migrate(server.url())
    require_empty(server.url())
    with psycopg.connect(server.url()) as connection:
        connection.execute(PROGRESS)
    with pytest.raises(NotReadyError, match="empty"):
        require_empty(server.url())
