"""The text of a `server.properties` file, read as Java reads it.

Comments begin with `#` or `!`; key and value are parted by `=`, `:` or white space; a backslash at
the end of a line goes on with the next; `\\n`, `\\t`, `\\uXXXX` and so on stand for a character.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from strom.metadata.settings.definition import SettingsError

BLANK: Final = " \t\f"
SEPARATORS: Final = "=:"
ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_properties(text: str) -> dict[str, str]:
    """Read the text of a file; of a key that comes twice the last value counts."""
    read = {}
    for line in logical_lines(text):
        end = key_end(line)
        rest = line[end:].lstrip(BLANK)
        if rest[:1] and rest[0] in SEPARATORS:
            rest = rest[1:].lstrip(BLANK)
        read[unescape(line[:end])] = unescape(rest)
    return read


def read_overrides(texts: Iterable[str]) -> dict[str, str]:
    """Read `key=value` texts, as they stand on a command line."""
    read = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise SettingsError(f"cannot read the override {text!r}: write it as key=value")
        read[key.strip()] = value.strip()
    return read


def logical_lines(text: str) -> Iterator[str]:
    """Give the lines that say something, each with its continuations joined to it."""
    begun = ""
    for natural in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        line = natural.lstrip(BLANK)
        # A continuation is never a comment; one of nothing is no continuation.
        if not begun and (not line or line[0] in "#!"):
            continue
        slashes = len(line) - len(line.rstrip("\\"))
        if slashes % 2:
            begun += line[:-1]
        else:
            yield begun + line
            begun = ""
    if begun:
        yield begun


def key_end(line: str) -> int:
    """Return where the key ends: at the first separator that is not escaped."""
    position = 0
    while position < len(line):
        if line[position] in SEPARATORS or line[position] in BLANK:
            return position
        position += 2 if line[position] == "\\" else 1
    return len(line)


def unescape(text: str) -> str:
    """Put the characters that escapes stand for in their place."""
    if "\\" not in text:
        return text
    pieces = text.split("\\")
    read = [pieces[0]]
    position = 1
    while position < len(pieces):
        piece = pieces[position]
        if not piece and position + 1 < len(pieces):
            # Two backslashes: the second stands for itself, and what follows is plain.
            position += 1
            read.append("\\" + pieces[position])
        else:
            read.append(unescape_first(piece))
        position += 1
    return "".join(read)


def unescape_first(piece: str) -> str:
    """Read the escape whose backslash stood before the text."""
    if not piece.startswith("u"):
        return ESCAPES.get(piece[:1], piece[:1]) + piece[1:]
    try:
        return chr(int(piece[1:5].ljust(4, "?"), 16)) + piece[5:]
    except ValueError:
        raise SettingsError(
            f"cannot read \\{piece[:5]} in the settings: write \\u and four hexadecimal digits"
        ) from None
