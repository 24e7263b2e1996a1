"""The brokers' own metrics: one page each, of which some families become facts."""

from examples.final_project.scraper.jobs import Every, Job, Metrics


def of(name: str, metrics_url: str) -> Job:
    """Return the job for a broker's metrics."""
    return Job(name, metrics_url, "broker-metrics", Metrics(("strom_", "kafka_")), Every(5))
