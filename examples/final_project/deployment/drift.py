"""What is in force and is other than in the repository: nothing is changed by hand, or it shows.

Looked at are the code that runs, the files that programs are told, topics, the broker's settings,
the database's settings, schema and roles. What the schema should be is asked of an empty server on
which the migrations were run.
"""

from collections.abc import Iterator

import psycopg
from confluent_kafka.admin import ConfigEntry, ConfigResource, ConfigSource, ResourceType

from examples.final_project.broker.properties import properties
from examples.final_project.database.addresses import of_place
from examples.final_project.database.migrate import migrate
from examples.final_project.database.server import LocalServer
from examples.final_project.database.settings import settings as database_settings
from examples.final_project.deployment import release
from examples.final_project.deployment.operation import Deployment
from examples.final_project.deployment.supervision import configuration
from examples.final_project.place import Place
from examples.final_project.scraper import topics

BROKER = "1"
REQUEST_SECONDS_MAX = 30
CHANGED_AT_RUN_TIME: tuple[object, ...] = (
    ConfigSource.DYNAMIC_BROKER_CONFIG.value,
    ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG.value,
)

#: A line for each thing in the schema that somebody may have changed; days come and go.
SCHEMA = """
WITH tables AS (
    SELECT c.oid, c.relname, c.reloptions, c.relacl FROM pg_class c
    WHERE c.relnamespace = 'flights'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'S')
      AND c.relname !~ '^telemetry_[0-9]{8}$'
)
SELECT 'table ' || relname, concat(reloptions, ' ', relacl) FROM tables
UNION ALL
SELECT 'column ' || relname || '.' || attname, concat(format_type(atttypid, atttypmod), ' ',
    attnotnull, ' ', pg_get_expr(adbin, adrelid))
FROM tables JOIN pg_attribute ON attrelid = tables.oid
    LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE attnum > 0 AND NOT attisdropped
UNION ALL
SELECT 'index ' || i.relname, pg_get_indexdef(indexrelid)
FROM tables JOIN pg_index ON indrelid = tables.oid JOIN pg_class i ON i.oid = indexrelid
UNION ALL
SELECT 'constraint ' || relname || '.' || conname, pg_get_constraintdef(c.oid)
FROM tables JOIN pg_constraint c ON conrelid = tables.oid
UNION ALL
SELECT 'trigger ' || relname || '.' || tgname, pg_get_triggerdef(g.oid)
FROM tables JOIN pg_trigger g ON tgrelid = tables.oid WHERE NOT tgisinternal
UNION ALL
SELECT 'function ' || proname, concat(pg_get_functiondef(p.oid), ' ', proacl)
FROM pg_proc p WHERE pronamespace = 'flights'::regnamespace
UNION ALL
SELECT 'role ' || rolname, concat(rolsuper, rolcreaterole, rolcanlogin, ' ', rolconfig)
FROM pg_roles WHERE rolname LIKE 'flights%'
UNION ALL
SELECT 'migration ' || name, checksum FROM public.schema_migration
"""
ALTERED = "SELECT name FROM pg_settings WHERE sourcefile LIKE '%%/postgresql.auto.conf'"
IN_FORCE = "SELECT current_setting(%s)"


def drift(at: Deployment) -> list[str]:
    """Return, a line each, what is other than it should be."""
    return [
        *_code(at.place),
        *_files(at),
        *topics.differences(at.settings.broker.bootstrap),
        *_broker(at),
        *_database(at),
    ]


def _code(place: Place) -> Iterator[str]:
    name, now = release.current(place), release.name_of()
    if name is None:
        yield "code: no release runs"
    elif release.name_of(place.releases / name) != name:
        yield f"code: files of the release that runs, {name}, were changed"
    elif name != now:
        yield f"code: release {name} runs, the repository is {now}: make project-upgrade"


def _files(at: Deployment) -> Iterator[str]:
    wanted = {
        "supervisord.conf": configuration(at.place, at.settings),
        "server.properties": "".join(
            f"{name}={value}\n" for name, value in properties(at.place, at.settings).items()
        ),
    }
    for name, text in wanted.items():
        file = at.place.etc / name
        if not file.exists() or file.read_text() != text:
            yield f"etc/{name}: not as the settings have it: make project-down project-up"


def _broker(at: Deployment) -> Iterator[str]:
    admin = topics.client(at.settings.broker.bootstrap)
    asked = ConfigResource(ResourceType.BROKER, BROKER)
    found = admin.describe_configs([asked])[asked].result(REQUEST_SECONDS_MAX)
    for name, value in properties(at.place, at.settings).items():
        if name in found and found[name].value != value:
            yield f"broker: {name} is {found[name].value}, not {value}"
    for name, entry in found.items():
        # One that was set to what it is anyway is none: brokers do that themselves (KIP-966).
        if entry.source in CHANGED_AT_RUN_TIME and entry.value != _otherwise(entry):
            yield f"broker: {name} is {entry.value}, set at run time"


def _otherwise(entry: ConfigEntry) -> str | None:
    """Return what a setting would be if nobody had set it at run time."""
    others = [
        each.value for each in entry.synonyms.values() if each.source not in CHANGED_AT_RUN_TIME
    ]
    return others[0] if others else None


def _database(at: Deployment) -> Iterator[str]:
    with psycopg.connect(of_place(at.place, at.settings)) as connection:
        wanted = dict(database_settings())
        for name, value in wanted.items():
            row = connection.execute(IN_FORCE, [name]).fetchone()
            if row is None or row[0] != value:
                yield f"database: {name} is {row and row[0]}, not {value}"
        for (name,) in connection.execute(ALTERED).fetchall():
            if name not in wanted:
                yield f"database: {name} was set by ALTER SYSTEM"
        found = _schema(connection)
    for name, (have, want) in _differing(found, _wanted_schema()):
        how = "is missing" if have is None else "is new" if want is None else "differs"
        yield f"database: {name} {how}"


def _wanted_schema() -> dict[str, str]:
    with LocalServer() as server:
        migrate(server.url())
        with psycopg.connect(server.url()) as connection:
            return _schema(connection)


def _schema(connection: psycopg.Connection) -> dict[str, str]:
    return dict(connection.execute(SCHEMA.encode()).fetchall())


def _differing(
    found: dict[str, str], wanted: dict[str, str]
) -> Iterator[tuple[str, tuple[str | None, str | None]]]:
    for name in sorted(found.keys() | wanted.keys()):
        pair = found.get(name), wanted.get(name)
        if pair[0] != pair[1]:
            yield name, pair
