"""Addresses of the database: one is given, and the roles' are made from it.

Only the one who migrates needs to log in. He is a member of the roles (`0007_members.sql`) and acts
as one of them by `SET ROLE` when a session begins. So the roles need no password, and it is the
same at a server that trusts everybody and at one that trusts nobody. The password of our own server
is in a file that libpq reads, so it is in no address, no command line and no log.
"""

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from examples.final_project.place import Place
from examples.final_project.settings import Settings

OWNER = "postgres"
WRITER = "flights_writer"
READER = "flights_reader"


class NoSuchRoleError(Exception):
    """The database was not migrated, or not to this."""


def of_place(place: Place, settings: Settings) -> str:
    """Return the address of the given server, or of the one that has its files in the place."""
    if settings.database.url:
        return settings.database.url
    own = f"postgresql://{OWNER}@/postgres?host={place.database}"
    return f"{own}&passfile={place.password}" if place.password.exists() else own


def acting_as(url: str, role: str) -> str:
    """Return the address for sessions that act as a role, with the role's own settings.

    PostgreSQL gives them to those who log in as the role, not to those who take it on.
    """
    with psycopg.connect(url) as connection:
        asked = "SELECT coalesce(rolconfig, '{}') FROM pg_roles WHERE rolname = %s"
        found = connection.execute(asked, [role]).fetchone()
    if found is None:
        raise NoSuchRoleError(f"the server has no role {role}: migrate the database first")
    given = str(conninfo_to_dict(url).get("options") or "")
    options = [f"-c {_escaped(each)}" for each in [f"role={role}", *found[0]]]
    return make_conninfo(url, options=" ".join([given, *options]).strip())


def shown(url: str) -> str:
    """Return the address without its password, for people to read."""
    parts = conninfo_to_dict(url)
    parts.pop("password", None)
    return make_conninfo("", **parts)


def _escaped(setting: str) -> str:
    return setting.replace("\\", "\\\\").replace(" ", "\\ ")
