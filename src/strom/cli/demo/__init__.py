"""`strom demo`: rockets send telemetry, somebody watches, and nothing of it is lost.

A broker in a directory of its own, a producer, two readers and a look at the files; it stops by
itself and leaves nothing behind.
"""
