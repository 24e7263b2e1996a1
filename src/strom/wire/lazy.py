"""Modules that are imported when first used.

kio has a class for every version of every message, and importing the ones of one API takes
several milliseconds; a broker that starts in a fraction of a second loads what clients ask for.
"""

from importlib import import_module
from types import ModuleType


class lazy(ModuleType):  # noqa: N801 - reads as a statement where it is used
    """Stands for a module; the first attribute asked of it imports it."""

    def __getattr__(self, name: str) -> object:
        value = getattr(import_module(self.__name__), name)
        # Kept here, so that only the first look-up comes this way.
        setattr(self, name, value)
        return value
