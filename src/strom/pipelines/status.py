"""What a run says of itself, for who looks at it from outside: the content of `status.json`."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from strom.pipelines.progress import SinkProgress

STARTING, RUNNING, STOPPING = "starting", "running", "stopping"
DONE, STOPPED, FAILED, DIED = "done", "stopped", "failed", "died"
#: The states of a run that is alive, or was when it died.
AT_WORK = (STARTING, RUNNING, STOPPING)


@dataclass(frozen=True, slots=True)
class Status:
    """How a run is."""

    pipeline: str
    file: str
    state: str
    once: bool
    pid: int
    started_ms: int
    updated_ms: int
    #: What went wrong, beginning with the name of the step.
    error: str | None = None
    sinks: tuple[SinkProgress, ...] = ()

    def write(self) -> dict[str, Any]:
        """Return it for a file."""
        return asdict(self)

    @classmethod
    def read(cls, value: Mapping[str, Any]) -> "Status":
        """Read what `write` returned."""
        sinks = tuple(SinkProgress(**each) for each in value["sinks"])
        return cls(**{**value, "sinks": sinks})
