"""The broker's settings: those that are code, and those that follow from the project's."""

from pathlib import Path

from examples.final_project.place import Place
from examples.final_project.settings import Settings

FILE = Path(__file__).with_name("server.properties")


def properties(place: Place, settings: Settings) -> dict[str, str]:
    """Return all settings of the broker by their names."""
    lines = (line.strip() for line in FILE.read_text().splitlines())
    pairs = (line.split("=", 1) for line in lines if line and not line.startswith("#"))
    of = settings.broker
    return {
        **{name.strip(): value.strip() for name, value in pairs},
        "listeners": f"PLAINTEXT://{_bracketed(of.listen)}:{of.port}",
        "advertised.listeners": f"PLAINTEXT://{_bracketed(of.host)}:{of.port}",
        "log.dirs": str(place.broker),
        "strom.http.host": of.listen,
        "strom.http.port": str(of.http_port),
    }


def write(place: Place, settings: Settings) -> Path:
    """Write them where the broker reads them; return that file."""
    place.etc.mkdir(parents=True, exist_ok=True)
    place.broker.mkdir(parents=True, exist_ok=True)
    file = place.etc / "server.properties"
    lines = (f"{name}={value}\n" for name, value in properties(place, settings).items())
    file.write_text("".join(lines))
    return file


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
