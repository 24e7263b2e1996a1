"""What tells the marker of an exactly-once write from a consumer's progress.

It loads nothing: who shows the lag of groups, without Spark, asks here too.
"""

#: What is committed with a marker, so that nobody takes a batch's number for an offset.
MARKER_METADATA = "strom marker"
