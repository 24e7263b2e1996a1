"""What the shell offers when a name is half typed. It must be quick, and silent when it fails."""

import os
from typing import Any

import typer

from strom.cli.failure import Failure

#: A shell that hangs after the tab key is worse than one that offers nothing.
ANSWER_SECONDS_MAX = 1.0


def topic_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the topics whose names begin so."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    from strom.cli.client import logger, require_reachable
    from strom.cli.options import DEFAULT_BOOTSTRAP

    named = ctx.params.get("bootstrap_server") or os.environ.get("STROM_BOOTSTRAP")
    settings: dict[str, Any] = {"bootstrap.servers": named or DEFAULT_BOOTSTRAP, "logger": logger()}
    try:
        require_reachable(settings)
        topics = AdminClient(settings).list_topics(timeout=ANSWER_SECONDS_MAX).topics
    except (Failure, KafkaException):
        return []
    return sorted(name for name in topics if name.startswith(incomplete))
