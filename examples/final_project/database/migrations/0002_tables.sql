-- Master data: the newest of each key, as in the compacted topics.
CREATE TABLE flights.rocket (
    rocket text PRIMARY KEY,
    maker text NOT NULL,
    stages integer NOT NULL CHECK (stages > 0),
    payload_kg integer NOT NULL CHECK (payload_kg >= 0)
);
CREATE TABLE flights.astronaut (
    astronaut text PRIMARY KEY,
    nation text NOT NULL,
    born integer NOT NULL
);

-- Where each flight stands. No foreign keys to the master data: it may come later.
CREATE TABLE flights.flight (
    flight text PRIMARY KEY,
    rocket text NOT NULL,
    pad text NOT NULL,
    commander text NOT NULL,
    launch timestamptz NOT NULL,
    status text NOT NULL,
    since timestamptz NOT NULL
);

-- Measurements, a partition per day: a day leaves by dropping its table, not row by row.
CREATE TABLE flights.telemetry (
    flight text NOT NULL,
    measured_at timestamptz NOT NULL,
    altitude_m double precision NOT NULL,
    speed_ms double precision NOT NULL,
    fuel_percent real NOT NULL,
    engine_celsius real NOT NULL,
    PRIMARY KEY (flight, measured_at)
) PARTITION BY RANGE (measured_at);
-- What belongs to no day yet is kept, not refused.
CREATE TABLE flights.telemetry_default PARTITION OF flights.telemetry DEFAULT;

-- Aggregates per flight and window.
CREATE TABLE flights.telemetry_window (
    flight text NOT NULL,
    window_start timestamptz NOT NULL,
    window_end timestamptz NOT NULL,
    measurements bigint NOT NULL,
    altitude_m_max double precision NOT NULL,
    speed_ms_avg double precision NOT NULL,
    engine_celsius_max real NOT NULL,
    PRIMARY KEY (flight, window_start)
);

CREATE TABLE flights.anomaly (
    flight text NOT NULL,
    measured_at timestamptz NOT NULL,
    kind text NOT NULL,
    detail text NOT NULL,
    resolved boolean NOT NULL DEFAULT false,
    PRIMARY KEY (flight, measured_at, kind)
);
