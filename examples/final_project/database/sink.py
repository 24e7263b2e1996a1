"""Both ways of the book to write each record's effect once.

- *Upsert*: rows have keys, and writing one again changes nothing. Enough where a row is the newest
  of its key.
- *Offsets in the transaction*: rows and how far the source was read are committed together. A batch
  that comes again is recognised and left out, so this also serves effects that are no upsert.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from psycopg import Connection
from psycopg.sql import SQL, Composable, Identifier, Placeholder

Row = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the schema, and the columns that its rows are told apart by."""

    name: str
    key: tuple[str, ...]


#: What goes to which table.
Rows = Mapping[Table, Sequence[Row]]
#: By topic and partition: the offset after the last one read.
Offsets = Mapping[tuple[str, int], int]

PROGRESS = Table("sink_progress", ("sink", "topic", "partition"))


class OutOfStepError(Exception):
    """Rows do not begin where the sink ends: some would be lost, or written twice."""


def upsert(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Write the rows; one whose key is there takes its place."""
    if not rows:
        return
    columns = list(rows[0])
    changed = [name for name in columns if name not in table.key]
    statement = SQL(
        "INSERT INTO flights.{table} ({columns}) VALUES ({values}) ON CONFLICT ({key}) {action}"
    ).format(
        table=Identifier(table.name),
        columns=SQL(", ").join(map(Identifier, columns)),
        values=SQL(", ").join(map(Placeholder, columns)),
        key=SQL(", ").join(map(Identifier, table.key)),
        action=_action(changed),
    )
    with connection.cursor() as cursor:
        cursor.executemany(statement, rows)


def upsert_all(connection: Connection, rows: Rows) -> None:
    """Write rows of several tables, all or none."""
    with connection.transaction():
        for table, each in rows.items():
            upsert(connection, table, each)


def write_once(
    connection: Connection, sink: str, offsets: tuple[Offsets, Offsets], rows: Rows
) -> bool:
    """Write the rows read between two offsets in one transaction; False if they were already."""
    begins, ends = offsets
    with connection.transaction():
        # Two writers of one sink: the second sees what the first has written.
        connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [sink])
        known = progress(connection, sink)
        if all(known.get(each, -1) >= end for each, end in ends.items()):
            return False
        for each, begin in begins.items():
            if known.get(each, begin) != begin:
                raise OutOfStepError(f"{sink}: {each} is at {known[each]}, the rows at {begin}")
        upsert_all(connection, rows)
        reached = [
            {"sink": sink, "topic": topic, "partition": partition, "end_offset": end}
            for (topic, partition), end in ends.items()
        ]
        upsert(connection, PROGRESS, reached)
    return True


def progress(connection: Connection, sink: str) -> dict[tuple[str, int], int]:
    """Return how far the sink is."""
    statement = "SELECT topic, partition, end_offset FROM flights.sink_progress WHERE sink = %s"
    rows = connection.execute(statement, [sink]).fetchall()
    return {(topic, partition): end for topic, partition, end in rows}


def _action(changed: Sequence[str]) -> Composable:
    if not changed:
        return SQL("DO NOTHING")
    pairs = (SQL("{0} = excluded.{0}").format(Identifier(name)) for name in changed)
    return SQL("DO UPDATE SET ") + SQL(", ").join(pairs)
