"""Modules that are imported when first used.

kio has a class for every version of every message, and importing the ones of one API takes
several milliseconds; a broker that starts in a fraction of a second loads what clients ask for.
"""

import sys
from importlib import import_module
from types import ModuleType


def import_schema(name: str) -> ModuleType:
    """Import a module of kio.

    kio registers strategies with Hypothesis where that is installed, which takes longer than
    all the rest of a broker's start; nobody here uses them, so kio is told that it is not.
    """
    if "hypothesis" in sys.modules or "kio.static._phantom" in sys.modules:
        return import_module(name)
    hidden: dict[str, ModuleType | None] = sys.modules  # type: ignore[assignment]
    hidden["hypothesis"] = None
    try:
        return import_module(name)
    finally:
        del hidden["hypothesis"]


class lazy(ModuleType):  # noqa: N801 - reads as a statement where it is used
    """Stands for a module of kio; the first attribute asked of it imports it."""

    def __getattr__(self, name: str) -> object:
        value = getattr(import_schema(self.__name__), name)
        # Kept here, so that only the first look-up comes this way.
        setattr(self, name, value)
        return value
