"""Sizes and points in time as people type them.

1TB   512 KiB   2026-11-16T10:00   @1700000000000
"""

import re
from datetime import datetime

#: Disks are sold and data is counted in powers of ten; the binary units are there by name.
UNITS = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "PB": 10**15,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
    "TIB": 2**40,
}

#: A thousand million petabytes.
SIZE_MAX = 10**24

_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")


def read_size(text: str) -> float:
    """Return a size in bytes."""
    match = _SIZE.fullmatch(text)
    if match is None or match[2].upper() not in UNITS:
        raise ValueError(f"{text!r} is no size: write it like 512KB, 1.5GB or 2TB")
    size = float(match[1]) * UNITS[match[2].upper()]
    if size > SIZE_MAX:
        raise ValueError(f"{text!r} is more than all disks hold")
    return size


def read_time_ms(text: str) -> int:
    """Return a time in milliseconds: `@` and milliseconds, or an ISO date and time (here local)."""
    if text.startswith("@") and text[1:].isdecimal():
        return int(text[1:])
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is no time: write 2026-11-16, 2026-11-16T10:30 or @ and milliseconds"
        ) from None
    return round(moment.timestamp() * 1000)


def size_text(size_bytes: float) -> str:
    """Return a size as people say it, in powers of ten."""
    for unit in ("B", "KB", "MB", "GB"):
        if size_bytes < 1000:
            return f"{size_bytes:.3g} {unit}"
        size_bytes /= 1000
    return f"{size_bytes:.4g} TB"
