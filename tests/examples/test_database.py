"""PostgreSQL as the project uses it: a real server, and all of it from code (PRJ-04, PRJ-07)."""

import hashlib
import subprocess
import sys
from datetime import UTC, date, datetime

import psycopg
import pytest

from examples.final_project import archive
from examples.final_project.archive import archive_day, archived, days, hottest, stored
from examples.final_project.database import explain, sink
from examples.final_project.database.addresses import READER, WRITER, acting_as
from examples.final_project.database.migrate import DIRECTORY, ChangedError, migrate
from examples.final_project.database.server import PARTS, LocalServer, reachable_by_all
from examples.final_project.processing import writing
from examples.final_project.processing.writing import offsets

pytestmark = pytest.mark.slow

AT = datetime(2030, 1, 1, 12, tzinfo=UTC)
TELEMETRY = sink.Table("telemetry", ("flight", "measured_at"))
P0, P1 = ("telemetry", 0), ("telemetry", 1)


@pytest.fixture(scope="module")
def server():
    with LocalServer() as started:
        yield started


@pytest.fixture
def url(server, request):
    """A database of the test's own."""
    name = "t" + hashlib.md5(request.node.name.encode()).hexdigest()
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return server.url(name)


@pytest.fixture
def connection(url):
    migrate(url)
    with psycopg.connect(url, autocommit=True) as connected:
        yield connected


def row(flight="F-1", altitude=1.0, at=AT):
    return {
        "flight": flight,
        "measured_at": at,
        "altitude_m": altitude,
        "speed_ms": 2.0,
        "fuel_percent": 3.0,
        "engine_celsius": 4.0,
    }


def count(connection):
    return connection.execute("SELECT count(*) FROM flights.telemetry").fetchone()[0]


def write(connection, begin, end, rows):
    offsets = ({P0: begin}, {P0: end})
    return sink.write_once(connection, "s", offsets, {TELEMETRY: rows})


def test_prj_07_everything_comes_from_the_migrations_and_once(url):
    assert migrate(url) == [file.stem for file in sorted(DIRECTORY.glob("*.sql"))]
    assert migrate(url) == []


def test_a_migration_that_was_changed_after_it_was_run_is_refused(url, tmp_path):
    file = tmp_path / "0001_a.sql"
    file.write_text("CREATE TABLE a ()")
    assert migrate(url, tmp_path) == ["0001_a"]
    file.write_text("CREATE TABLE b ()")
    with pytest.raises(ChangedError):
        migrate(url, tmp_path)


def test_a_migration_that_fails_leaves_nothing(url, tmp_path):
    (tmp_path / "0001_a.sql").write_text("CREATE TABLE a (); SELECT 1/0")
    with pytest.raises(psycopg.errors.DivisionByZero):
        migrate(url, tmp_path)
    (tmp_path / "0001_a.sql").write_text("CREATE TABLE a ()")
    assert migrate(url, tmp_path) == ["0001_a"]


def test_prj_04_the_servers_settings_are_in_force(connection):
    assert connection.execute("SHOW shared_buffers").fetchone() == ("256MB",)
    assert connection.execute("SHOW random_page_cost").fetchone() == ("1.1",)


def test_prj_04_a_day_has_its_partition_and_what_has_none_is_kept(connection):
    connection.execute("SELECT flights.ensure_telemetry_day(%s)", [date(2030, 1, 1)])
    connection.execute("SELECT flights.ensure_telemetry_day(%s)", [date(2030, 1, 1)])
    late = datetime(2031, 1, 1, tzinfo=UTC)
    sink.upsert(connection, TELEMETRY, [row(), row(at=late)])
    found = connection.execute("SELECT tableoid::regclass::text FROM flights.telemetry").fetchall()
    assert sorted(found) == [("flights.telemetry_20300101",), ("flights.telemetry_default",)]


def test_prj_04_each_index_is_used_and_spares_pages(connection):
    explain.fill(connection)
    for case, before, after in explain.compared(connection):
        of_a_day = case.index.removeprefix("telemetry_")
        assert of_a_day in after.index, case.what
        assert of_a_day not in before.index, case.what
        assert after.pages * 10 < before.pages, case.what


@pytest.mark.parametrize("logs_in", [True, False])
def test_the_reader_reads_and_the_writer_writes(server, connection, logs_in):
    database = connection.info.dbname

    def address(role):
        url = server.url(database)
        return server.url(database, role) if logs_in else acting_as(url, role)

    with psycopg.connect(address(WRITER), autocommit=True) as writer:
        assert write(writer, 0, 1, [row()])
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            writer.execute("DROP TABLE flights.telemetry")
    with psycopg.connect(address(READER), autocommit=True) as reader:
        assert count(reader) == 1
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            write(reader, 1, 2, [row("F-2")])


def test_ack_08_an_upsert_again_changes_nothing(connection):
    for _ in range(2):
        sink.upsert(connection, TELEMETRY, [row(), row("F-2")])
    assert count(connection) == 2


def test_ack_09_a_batch_that_comes_again_is_left_out(connection):
    assert write(connection, 0, 2, [row()])
    assert not write(connection, 0, 2, [row("F-2")])
    assert count(connection) == 1
    assert sink.progress(connection, "s") == {P0: 2}


@pytest.mark.parametrize(("begin", "end"), [(3, 5), (1, 5)])
def test_rows_that_do_not_begin_where_the_sink_ends_are_refused(connection, begin, end):
    write(connection, 0, 2, [row()])
    with pytest.raises(sink.OutOfStepError):
        write(connection, begin, end, [row("F-2")])
    assert count(connection) == 1


def test_ack_09_rows_and_progress_are_there_together_or_not_at_all(connection):
    with pytest.raises(psycopg.errors.NotNullViolation):
        write(connection, 0, 2, [row(), row("F-2", altitude=None)])
    nowhere = ("telemetry", None)
    with pytest.raises(psycopg.errors.NotNullViolation):
        sink.write_once(connection, "s", ({}, {nowhere: 2}), {TELEMETRY: [row()]})
    assert count(connection) == 0
    assert sink.progress(connection, "s") == {}


@pytest.mark.parametrize("begins", [0, 7])
def test_ack_09_a_new_checkpoint_that_begins_elsewhere_is_refused(connection, tmp_path, begins):
    write(connection, 0, 2, [row()])
    (tmp_path / "offsets").mkdir()
    ends = f'{{"telemetry":{{"0":9}},"#began":{{"telemetry":{{"0":{begins}}}}}}}'
    (tmp_path / "offsets" / "0").write_text(f"v1\n{{}}\n{ends}")
    with pytest.raises(sink.OutOfStepError):
        sink.write_once(connection, "s", offsets(tmp_path, 0), {TELEMETRY: [row("F-2")]})
    assert count(connection) == 1


def test_a_partition_that_appears_later_is_taken_in(connection):
    write(connection, 0, 2, [row()])
    offsets = ({P0: 2, P1: 7}, {P0: 3, P1: 9})
    assert sink.write_once(connection, "s", offsets, {TELEMETRY: [row("F-2")]})
    assert sink.progress(connection, "s") == {P0: 3, P1: 9}


def test_a_server_that_crashed_comes_back_with_its_data():
    with LocalServer() as server:
        migrate(server.url())
        server.stop("immediate")
        server.start()
        assert migrate(server.url()) == []


def test_a_database_that_stays_away_is_named_with_what_to_do_but_without_its_password(monkeypatch):
    monkeypatch.setattr(writing, "ATTEMPTS_MAX", 2)
    monkeypatch.setattr(writing, "AGAIN_SECONDS", 0.0)
    with pytest.raises(writing.AwayError) as caught:
        writing.patiently("postgresql://owner:secret@127.0.0.1:1/flights", print)
    told = str(caught.value)
    assert "host=127.0.0.1" in told
    assert "secret" not in told
    assert "2 attempts: connection failed" in told
    assert "bring the server back and start again: the micro-batch is repeated" in told


def test_programs_that_others_cannot_reach_are_copied(tmp_path):
    home = tmp_path / "home"
    for part in PARTS:
        (home / part).mkdir(parents=True)
        (home / part / "file").touch()
    home.chmod(0o700)
    copy = reachable_by_all(home, tmp_path / "copy")
    assert copy == reachable_by_all(home, tmp_path / "copy") == tmp_path / "copy"
    assert all((copy / part / "file").exists() for part in PARTS)


def partitions(connection):
    query = "SELECT relid::regclass::text FROM pg_partition_tree('flights.telemetry') WHERE isleaf"
    return sorted(name for (name,) in connection.execute(query).fetchall())


JANUARY_1, JANUARY_2 = date(2030, 1, 1), date(2030, 1, 2)
FIRST = "flights.telemetry_20300101"
DEFAULT = "flights.telemetry_default"


@pytest.fixture
def two_days(connection):
    """Two measurements of a day with a partition, and one of the day after, without."""
    connection.execute("SELECT flights.ensure_telemetry_day(%s)", [JANUARY_1])
    last = row("F-2", at=datetime(2030, 1, 1, 23, 59, 59, tzinfo=UTC))
    after = row("F-3", at=datetime(2030, 1, 2, tzinfo=UTC))
    sink.upsert(connection, TELEMETRY, [row(), last, after])


def test_a_day_is_archived_and_stays(connection, two_days, url, tmp_path):
    reader = acting_as(url, READER)
    for _ in range(2):
        assert archive_day(reader, JANUARY_1, tmp_path) == 2
    assert hottest(tmp_path) == [("F-1", 4.0), ("F-2", 4.0)]
    assert [path.name for path in tmp_path.rglob("*")] == ["day=2030-01-01", "telemetry.parquet"]
    assert days(reader) == [JANUARY_1, JANUARY_2]
    assert archive_day(reader, JANUARY_2, tmp_path) == 1
    assert archived(tmp_path) == stored(reader) == (3, 3, 4.0)


def test_prj_04_a_day_leaves_by_dropping_its_table_and_nothing_is_lost(
    connection, two_days, url, tmp_path
):
    assert archive_day(url, JANUARY_1, tmp_path, drop=True) == 2
    assert partitions(connection) == [DEFAULT]
    assert archive_day(url, JANUARY_1, tmp_path, drop=True) == 0
    assert hottest(tmp_path) == [("F-1", 4.0), ("F-2", 4.0)]
    assert archive_day(url, JANUARY_2, tmp_path, drop=True) == 1
    assert count(connection) == 0
    assert archived(tmp_path).measurements == 3


def test_what_comes_after_its_day_has_left_is_added(connection, two_days, url, tmp_path):
    archive_day(url, JANUARY_1, tmp_path, drop=True)
    connection.execute("SELECT flights.ensure_telemetry_day(%s)", [JANUARY_1])
    late = {**row("F-4"), "engine_celsius": 7.0}
    corrected = {**row(), "engine_celsius": 6.0}
    sink.upsert(connection, TELEMETRY, [late, corrected])
    assert partitions(connection) == [FIRST, DEFAULT]
    assert archive_day(url, JANUARY_1, tmp_path, drop=True) == 2
    assert partitions(connection) == [DEFAULT]
    assert hottest(tmp_path) == [("F-4", 7.0), ("F-1", 6.0), ("F-2", 4.0)]


def test_a_day_whose_first_rows_are_in_the_default_partition_goes_on_there(
    connection, two_days, url, tmp_path
):
    """What is written while its day leaves has no partition any more, and the next may not fail."""
    connection.execute("SELECT flights.ensure_telemetry_day(%s)", [JANUARY_2])
    sink.upsert(connection, TELEMETRY, [row("F-5", at=datetime(2030, 1, 2, 1, tzinfo=UTC))])
    assert partitions(connection) == [FIRST, DEFAULT]
    assert archive_day(url, JANUARY_2, tmp_path, drop=True) == 2
    connection.execute("SELECT flights.ensure_telemetry_day(%s)", [JANUARY_2])
    assert partitions(connection) == [FIRST, "flights.telemetry_20300102", DEFAULT]


def test_a_day_that_is_not_in_the_archive_does_not_leave(connection, two_days, url, tmp_path):
    (tmp_path / "day=2030-01-01").touch()
    with pytest.raises(FileExistsError):
        archive_day(url, JANUARY_1, tmp_path, drop=True)
    assert partitions(connection) == [FIRST, DEFAULT]
    assert count(connection) == 3


@pytest.mark.parametrize("name", ["'q'", 'a"b', "a,b", "a;b|c", "a\nb", "", " a ", "\\."])
def test_a_flights_name_is_the_same_in_the_archive(connection, two_days, url, tmp_path, name):
    sink.upsert(connection, TELEMETRY, [{**row(name), "engine_celsius": 9.0}])
    assert archive_day(url, JANUARY_1, tmp_path, drop=True) == 3
    assert hottest(tmp_path)[0] == (name, 9.0)


def test_prj_04_a_day_of_which_a_row_did_not_arrive_does_not_leave(
    connection, two_days, url, tmp_path, monkeypatch
):
    monkeypatch.setattr(archive, "MERGED", archive.MERGED.replace("ORDER BY", "LIMIT 1 --"))
    with pytest.raises(RuntimeError, match="2 rows were read from the database, now it is"):
        archive_day(url, JANUARY_1, tmp_path, drop=True)
    assert not (tmp_path / "day=2030-01-01" / "telemetry.parquet").exists()
    assert (partitions(connection), count(connection)) == ([FIRST, DEFAULT], 3)


def test_prj_04_a_day_that_holds_more_than_was_archived_does_not_leave(
    connection, two_days, url, tmp_path, monkeypatch
):
    """Nothing but a fault of ours could do that: the day is held while it is read."""
    monkeypatch.setattr(archive, "DAY", archive.DAY.replace(b"WHERE", b"WHERE flight = 'F-1' AND"))
    with pytest.raises(RuntimeError, match="1 rows were read from the database, now it is"):
        archive_day(url, JANUARY_1, tmp_path, drop=True)
    assert (partitions(connection), count(connection)) == ([FIRST, DEFAULT], 3)


def test_only_the_owner_lets_a_day_leave(connection, two_days, url, tmp_path):
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        archive_day(acting_as(url, WRITER), JANUARY_1, tmp_path, drop=True)
    assert partitions(connection) == [FIRST, DEFAULT]


def test_the_archive_as_a_program(two_days, url, tmp_path):
    command = [sys.executable, "-m", "examples.final_project.archive", url, tmp_path]
    done = subprocess.run(
        [*command, JANUARY_1.isoformat(), "--drop"], check=True, capture_output=True, text=True
    )
    assert done.stdout == "2030-01-01: 2 measurements in the archive and out of the database\n"
    assert archived(tmp_path).measurements == 2
