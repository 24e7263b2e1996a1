"""Makes `format("strom")` known to Spark, which looks for modules with a name like this one's."""

from strom.spark.source import StromSource as DefaultSource

__all__ = ["DefaultSource"]
