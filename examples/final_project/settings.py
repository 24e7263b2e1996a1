"""The project's settings: one table, from which files and the environment are read and checked.

    [site]                            in project.toml
    port = 18080
    STROM_PROJECT_SITE_PORT=18080     in the environment, which goes before the file

Each setting has a default, so an empty file is a good one. What is not in the table, or is not of
its kind, is refused with one line that names the place.
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

PREFIX = "STROM_PROJECT_"
HEAD = """\
# The settings of the final project. Each line below is a default: take its '#' away to change it.
# STROM_PROJECT_<SECTION>_<NAME> in the environment goes before this file.
"""

Value = str | int | float


class SettingsError(Exception):
    """A setting cannot be what it is; the text is one line that says which, and what it can be."""


class Kind(NamedTuple):
    """Which values a setting can have, in words and as a test."""

    words: str
    fits: Callable[[Any], bool]


def _is_port(value: int) -> bool:
    return 0 < value < 65536


def _is_host(value: str) -> bool:
    return bool(value) and not set(value) & set(" /@,:\"'\\\n")


def _is_address(value: str) -> bool:
    try:
        ip_address(value)
    except ValueError:
        return False
    return True


def _is_page(value: str) -> bool:
    return not value or value.startswith(("http://", "https://"))


def _is_database(value: str) -> bool:
    try:
        conninfo_to_dict(value)
    except ProgrammingError:
        return False
    return not value or value.startswith(("postgresql://", "postgres://"))


PORT = Kind("a port, 1 to 65535", _is_port)
HOST = Kind("the name or the address of a machine", _is_host)
LISTEN = Kind("an address of this machine, as 127.0.0.1 or 0.0.0.0", _is_address)
PAGE = Kind("http://... or https://..., or empty", _is_page)
DATABASE = Kind("postgresql://..., or empty", _is_database)
SHARE = Kind("a share, 0 to 1", lambda value: 0 <= value <= 1)
SECONDS = Kind("seconds, 0 to 3600", lambda value: 0 <= value <= 3600)
POSITIVE = Kind("1 or more", lambda value: 1 <= value < 2**31)
PERCENT = Kind("a percentage, 1 to 100", lambda value: 1 <= value <= 100)
ANY = Kind("a whole number", lambda value: abs(value) < 2**31)


def _setting(default: Value, kind: Kind, what: str) -> Any:  # noqa: ANN401 - as dataclasses.field
    return field(default=default, metadata={"kind": kind, "what": what})


@dataclass(frozen=True, slots=True)
class SiteSettings:
    """The web site that is scraped."""

    listen: str = _setting("127.0.0.1", LISTEN, "where the site listens")
    host: str = _setting("127.0.0.1", HOST, "where the other parts find it")
    port: int = _setting(18080, PORT, "its port")
    seed: int = _setting(7, ANY, "from which all of its flights follow")
    faults: float = _setting(0.1, SHARE, "the share of its answers that are bad")

    @property
    def url(self) -> str:
        """Return where its pages are."""
        return f"http://{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """The broker that keeps the topics."""

    listen: str = _setting("127.0.0.1", LISTEN, "where the broker listens")
    host: str = _setting("127.0.0.1", HOST, "where the other parts find it")
    port: int = _setting(19092, PORT, "its port for clients")
    http_port: int = _setting(19644, PORT, "its port for /metrics and /healthz")

    @property
    def bootstrap(self) -> str:
        """Return the address for clients."""
        return f"{self.host}:{self.port}"

    @property
    def http(self) -> str:
        """Return where it tells of itself."""
        return f"http://{self.host}:{self.http_port}"


@dataclass(frozen=True, slots=True)
class ScraperSettings:
    """What is scraped."""

    site: str = _setting("", PAGE, "the address of the site; empty: this project's own")
    launches: str = _setting("", PAGE, "the address of a launch calendar; empty: none is asked")
    metrics: str = _setting("", PAGE, "a broker's page of metrics; empty: this project's own")


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """Where the results go."""

    url: str = _setting(
        "", DATABASE, "a server that is there; empty: one of this project's own, on a socket"
    )


@dataclass(frozen=True, slots=True)
class ProcessingSettings:
    """Spark's queries; Spark's own settings are in etc/spark-defaults.conf."""

    every_seconds: float = _setting(1.0, SECONDS, "how often a micro-batch begins")
    metrics_every_seconds: float = _setting(5.0, SECONDS, "the same for the brokers' metrics")


@dataclass(frozen=True, slots=True)
class ArchiveSettings:
    """Days that leave the database."""

    keep_days: int = _setting(7, POSITIVE, "so many days stay in the database, today not counted")
    every_minutes: int = _setting(60, POSITIVE, "how often days are looked for that may leave")


@dataclass(frozen=True, slots=True)
class FlowSettings:
    """When the whole is taken for stopped, though each part runs."""

    quiet_minutes: int = _setting(5, POSITIVE, "so long nothing new may come to the database")


@dataclass(frozen=True, slots=True)
class DiskSettings:
    """When the disk is taken for too full."""

    percent: int = _setting(60, PERCENT, "above it the watch says so; Kafka's rule is 60")


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The files in logs/."""

    bytes_max: int = _setting(10_000_000, POSITIVE, "a file is put aside when it is so large")
    files_kept: int = _setting(5, POSITIVE, "so many that were put aside are kept, of each part")


@dataclass(frozen=True, slots=True)
class Settings:
    """All of them, by section."""

    site: SiteSettings = field(default_factory=SiteSettings)
    broker: BrokerSettings = field(default_factory=BrokerSettings)
    scraper: ScraperSettings = field(default_factory=ScraperSettings)
    database: DatabaseSettings = field(default_factory=DatabaseSettings)
    processing: ProcessingSettings = field(default_factory=ProcessingSettings)
    archive: ArchiveSettings = field(default_factory=ArchiveSettings)
    flow: FlowSettings = field(default_factory=FlowSettings)
    disk: DiskSettings = field(default_factory=DiskSettings)
    logs: LogSettings = field(default_factory=LogSettings)

    @property
    def scraped_site(self) -> str:
        """Return the address of the site that is scraped."""
        return (self.scraper.site or self.site.url).rstrip("/")

    @property
    def scraped_metrics(self) -> str:
        """Return the page of the broker's metrics."""
        return self.scraper.metrics or f"{self.broker.http}/metrics"


SECTIONS: dict[str, Callable[..., Any]] = {
    "site": SiteSettings,
    "broker": BrokerSettings,
    "scraper": ScraperSettings,
    "database": DatabaseSettings,
    "processing": ProcessingSettings,
    "archive": ArchiveSettings,
    "flow": FlowSettings,
    "disk": DiskSettings,
    "logs": LogSettings,
}


def load(file: Path, environment: Mapping[str, str]) -> Settings:
    """Return the settings of a file, which need not be there, and of the environment."""
    given = {section: dict(of) for section, of in _in_file(file).items()}
    for section, name, variable in _in_environment(environment):
        text = environment[variable]
        given.setdefault(section, {})[name] = _parsed(variable, _definition(section, name), text)
    return Settings(**{section: SECTIONS[section](**of) for section, of in given.items()})


def template() -> str:
    """Return a file with all settings in it, each as a comment with its default."""
    lines = [HEAD]
    for section, made in SECTIONS.items():
        lines.append(f"[{section}]")
        for each in fields(made):  # type: ignore[arg-type]
            shown = f'"{each.default}"' if isinstance(each.default, str) else each.default
            lines += [f"# {each.metadata['what']}", f"#{each.name} = {shown}"]
        lines.append("")
    return "\n".join(lines)


def _in_file(file: Path) -> dict[str, dict[str, Value]]:
    """Return what a file says, each value of its kind."""
    try:
        said = tomllib.loads(file.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{file}: {error}") from None
    for section, given in said.items():
        if section not in SECTIONS or not isinstance(given, dict):
            sections = ", ".join(SECTIONS)
            raise SettingsError(f"{file}: there is no section [{section}]; there are {sections}")
        for name, value in given.items():
            where = f"{file}: [{section}] {name}"
            definition = _known(where, section, name)
            if not _is_of_type(value, type(definition.default)):
                raise _refusal(where, definition, value)
            given[name] = _checked(where, definition, value)
    return said


def _in_environment(environment: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield section, name and variable of what the environment says."""
    for variable in sorted(environment):
        if variable.startswith(PREFIX):
            section, _, name = variable.removeprefix(PREFIX).lower().partition("_")
            if section not in SECTIONS:
                sections = ", ".join(SECTIONS)
                raise SettingsError(f"{variable}: there is no section {section} in {sections}")
            _known(variable, section, name)
            yield section, name, variable


def _definition(section: str, name: str) -> Field[Any]:
    known = {each.name: each for each in fields(SECTIONS[section])}  # type: ignore[arg-type]
    return known[name]


def _known(where: str, section: str, name: str) -> Field[Any]:
    try:
        return _definition(section, name)
    except KeyError:
        names = ", ".join(each.name for each in fields(SECTIONS[section]))  # type: ignore[arg-type]
        raise SettingsError(f"{where}: there is no such setting; there are {names}") from None


def _parsed(where: str, definition: Field[Any], text: str) -> Value:
    try:
        value = _typed(text, type(definition.default))
    except ValueError:
        raise _refusal(where, definition, text) from None
    return _checked(where, definition, value)


def _typed(text: str, wanted: type) -> Value:
    if wanted is int:
        return int(text)
    return float(text) if wanted is float else text


def _is_of_type(value: object, wanted: type) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, (int, float)) if wanted is float else isinstance(value, wanted)


def _checked(where: str, definition: Field[Any], value: Value) -> Value:
    if not definition.metadata["kind"].fits(value):
        raise _refusal(where, definition, value)
    return value


def _refusal(where: str, definition: Field[Any], value: object) -> SettingsError:
    words = definition.metadata["kind"].words
    # An address may have a password in it.
    shown = "what is given" if definition.metadata["kind"] is DATABASE else repr(value)
    return SettingsError(f"{where} ({definition.metadata['what']}): {shown} is not {words}")
