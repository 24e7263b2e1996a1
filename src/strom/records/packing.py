"""Columns of rows into the records of batches: what Arrow, and Spark with it, hands over.

`Spreader` and `Packer` are compiled (`_packing.pyx`) where the install could build them, and in
Python otherwise (`plain_packing`), with the same records at a hundredth of the speed.
"""

from strom.records.plain_packing import (
    HeaderLists,
    NoSuchPartitionError,
    Numbers,
    Rows,
    Spread,
    Texts,
)

try:
    from strom.records._packing import Packer, Spreader
except ImportError:
    from strom.records.plain_packing import Packer, Spreader

    IS_COMPILED = False
else:
    IS_COMPILED = True

__all__ = [
    "IS_COMPILED",
    "HeaderLists",
    "NoSuchPartitionError",
    "Numbers",
    "Packer",
    "Rows",
    "Spread",
    "Spreader",
    "Texts",
]
