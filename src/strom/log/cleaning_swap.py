"""Putting a cleaned segment in the place of those that it was made of.

    X.index.cleaned …  ─▶  X.index.swap …
    X.log.cleaned      ─▶  X.log.swap        from here on the new segment counts
    old X, Y, Z        ─▶  .deleted, .log files first
    X.index.swap …     ─▶  X.index …
    X.log.swap         ─▶  X.log             done

Names change in this order, on the disk too, so a crash leaves either no X.log.swap, and the old
segments are all there, or one, and a start finishes what was begun: it goes from the first to the
last offset of what it replaces, because the cleaner always leaves the last batch's header.

A segment without aborted transactions has no .txnindex. One that is there once X.index.swap has its
last name is the new one's; before that it is an old one's, and goes.

A full disk may have no room for a name either. Until X.log.swap is there that is taken back, and
the log is what it was; from then on the error is the log's, and the next start's to put right.
"""

import contextlib

from strom.log.batches import walk
from strom.log.disk import Disk, is_short
from strom.log.segment import (
    CLEANED,
    INDEX,
    LOG,
    SWAP,
    TIME_INDEX,
    TRANSACTION_INDEX,
    Segment,
    file_name,
)

_BESIDE = (INDEX, TIME_INDEX, TRANSACTION_INDEX)


class SwapGivenUpError(OSError):
    """There was no room for a name; nothing of the log has changed."""


def begin_swap(disk: Disk, cleaned: Segment) -> None:
    """Let the new segment count, under its second name; or take it all back."""
    try:
        for suffix in (*_BESIDE, LOG):
            path = cleaned.path(suffix)
            if suffix != TRANSACTION_INDEX or disk.exists(path + CLEANED):
                disk.rename(path + CLEANED, path + SWAP)
    except OSError as error:
        if not is_short(error):
            raise
        _discard(disk, cleaned)
        raise SwapGivenUpError(error.errno, error.strerror) from error


def _discard(disk: Disk, cleaned: Segment) -> None:
    """Remove a segment that does not count yet; what stays of it, the next cleaning replaces."""
    with contextlib.suppress(OSError):
        for suffix in (*_BESIDE, LOG):
            for stage in (CLEANED, SWAP):
                disk.remove(cleaned.path(suffix) + stage)


def end_swap(disk: Disk, cleaned: Segment) -> None:
    """Give the new segment its name, now that the old ones have given theirs away."""
    for suffix in (*_BESIDE, LOG):
        path = cleaned.path(suffix)
        if suffix != TRANSACTION_INDEX or disk.exists(path + SWAP):
            disk.rename(path + SWAP, path)


def finish_swaps(disk: Disk, directory: str, listed: dict[str, int]) -> None:
    """Finish what a crash has interrupted; remove what was not yet to count."""
    for name in sorted(each for each in listed if each.endswith(LOG + SWAP)):
        _finish(disk, directory, name, listed)
    for name, _ in disk.scan(directory):
        if name.endswith(SWAP):
            disk.remove(f"{directory}/{name}")


def _finish(disk: Disk, directory: str, name: str, listed: dict[str, int]) -> None:
    base = int(name.removesuffix(LOG + SWAP))
    path = f"{directory}/{name}"
    end = base
    for _, header, _ in walk(disk.open(path), 0, listed[name]):
        end = header.last_offset + 1
    for old in sorted(each for each in listed if each.endswith(LOG)):
        number = old.removesuffix(LOG)
        if number.isdigit() and base <= int(number) < end:
            for suffix in (LOG, *_BESIDE):
                disk.remove(f"{directory}/{number}{suffix}")
    index, void = (file_name(base, suffix) for suffix in (INDEX, TRANSACTION_INDEX))
    if index + SWAP in listed and void + SWAP not in listed:
        # The old one may be there still, without its .log; the new segment has none.
        disk.remove(f"{directory}/{void}")
    for suffix in _BESIDE:
        beside = f"{directory}/{file_name(base, suffix)}"
        if file_name(base, suffix) + SWAP in listed:
            disk.rename(beside + SWAP, beside)
    disk.rename(path, path.removesuffix(SWAP))
