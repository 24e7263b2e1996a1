"""The `strom` command: one noun a file.

Importing the Kafka client or rich takes longer than most commands run, so both are imported
inside the functions that need them.
"""
