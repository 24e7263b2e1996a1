"""Files of properties that a user names: a broker's settings, a client's."""

from strom.cli.failure import Failure


def read_properties_file(path: str) -> dict[str, str]:
    """Read the file; what is wrong with it is a Failure that names it."""
    from strom.metadata.settings.definition import SettingsError
    from strom.metadata.settings.properties import read_properties

    try:
        with open(path, encoding="utf-8") as file:
            return read_properties(file.read())
    except SettingsError as error:
        raise Failure(f"{path}: {error}") from None
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Failure(f"cannot read {path}: it is not UTF-8 text") from None
