"""The database's server as a program: PostgreSQL in the foreground.

python -m examples.final_project.database [--dir DIR]

Makes a database cluster if there is none, with the owner's password of `secrets/pgpass`, if that is
there. Then this process becomes PostgreSQL; SIGINT ends it in order.
"""

import os

from examples.final_project.database.server import (
    ENVIRONMENT,
    LocalServer,
    UnreachableError,
    as_whom,
)
from examples.final_project.part import begin, fail, parser_of


def main() -> None:
    """Become PostgreSQL."""
    what = "PostgreSQL, on a socket in DIR/data/database; SIGINT ends it in order."
    options = parser_of("database", what).parse_args()
    part = begin("database", options.dir)
    if part.settings.database.url:
        fail("[database] url names a server: there is none to run here")
    passwords = part.place.password if part.place.password.exists() else None
    try:
        server = LocalServer(part.place.database, passwords=passwords)
        server.prepare()
    except (UnreachableError, RuntimeError, ValueError, OSError) as error:
        fail(str(error))
    os.chdir(server.directory)
    if who := as_whom():
        os.setgroups(who["extra_groups"])
        os.setgid(who["group"])
        os.setuid(who["user"])
    part.become(server.command(), ENVIRONMENT)


if __name__ == "__main__":
    main()
