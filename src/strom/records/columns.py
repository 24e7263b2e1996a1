"""The records of batches as columns: what Arrow, and Spark with it, takes without a copy.

`Columns` is compiled (`_columns.pyx`) where the install could build it, and in Python otherwise
(`plain_columns`), with the same columns at a hundredth of the speed.
"""

from strom.records.plain_columns import HeaderColumns, Taken, Texts

try:
    from strom.records._columns import Columns
except ImportError:
    from strom.records.plain_columns import Columns

    IS_COMPILED = False
else:
    IS_COMPILED = True

__all__ = ["IS_COMPILED", "Columns", "HeaderColumns", "Taken", "Texts"]
