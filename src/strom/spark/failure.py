"""What goes wrong between Spark and a topic, said in words that tell what to do about it."""


class OptionError(ValueError):
    """An option cannot be honoured: it is unknown, not to be had here, or its value is wrong."""


class UnreachableError(ConnectionError):
    """No broker answered, or none that leads the partition, for as long as it was allowed to."""


class DataLossError(RuntimeError):
    """Records that the query should have read are gone, and `failOnDataLoss` is true."""
