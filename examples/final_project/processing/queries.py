"""The names of the queries: for those who ask how far they are, without Spark."""

#: The consumer group of a query begins so.
GROUP = "final-project-"
#: What each query reads.
QUERIES = {
    "flights": "flights",
    "telemetry": "telemetry",
    "windows": "telemetry",
    "metrics": "broker-metrics",
}
