"""The flight of a rocket, second by second: made up, but the same each time.

    Countdown ──▶ Liftoff ──▶ Ascent ──▶ Orbit ──▶ Re-entry ──▶ Landed
        └──▶ Aborted

`progress` runs from 0 (the countdown begins) to 1 (everything is over).
"""

import json
import math
from dataclasses import asdict, dataclass

#: Rockets, and how far behind the first one they are; of these the partitions of three differ.
ROCKETS = {"rakete1": 0.0, "rakete2": 0.03, "rakete3": 0.05, "rakete5": 0.08}
#: There is always one.
ABORTS = "rakete2"

#: From which progress on a phase lasts.
PHASES = (
    (0.0, "Countdown"),
    (0.2, "Liftoff"),
    (0.3, "Ascent"),
    (0.5, "Orbit"),
    (0.7, "Re-entry"),
    (0.9, "Landed"),
)
ORBIT_KM = 408.0
ORBIT_SPEED = 27_600.0


@dataclass(frozen=True, slots=True)
class Telemetry:
    """What a rocket's sensors say at one moment."""

    phase: str
    altitude_km: float
    speed_kmh: int
    fuel_percent: int

    def to_json(self) -> bytes:
        """Return the value of the record."""
        return json.dumps(asdict(self)).encode()


def read_telemetry(value: bytes) -> Telemetry:
    """Read a record's value."""
    return Telemetry(**json.loads(value))


def telemetry(rocket: str, progress: float) -> Telemetry:
    """Return what a rocket sends at this moment of the show."""
    own = max(0.0, progress - ROCKETS[rocket])
    phase = phase_at(own)
    if rocket == ABORTS and phase != "Countdown":
        return Telemetry("Aborted", 0.0, 0, 100)
    height = height_at(own)
    burnt = min(1.0, max(0.0, (own - 0.2) / 0.3))
    return Telemetry(
        phase,
        round(ORBIT_KM * height, 1),
        round(ORBIT_SPEED * math.sqrt(height)),
        round(100 - 92 * burnt),
    )


def phase_at(progress: float) -> str:
    """Return the phase of a flight."""
    return [name for begin, name in PHASES if progress >= begin][-1]


def height_at(progress: float) -> float:
    """Return the height as a share of the orbit's: up in a curve, along, down in a curve."""
    up = smooth((progress - 0.2) / 0.3)
    down = smooth((progress - 0.7) / 0.2)
    return up * (1 - down)


def smooth(share: float) -> float:
    """Go from 0 to 1 without a jerk."""
    share = min(1.0, max(0.0, share))
    return share * share * (3 - 2 * share)
