-- Of all flights in a stretch of time: rows come in by time, so a summary per range of blocks does,
-- in a sixtieth of the space of a B-tree. With ranges of 16 blocks or more the planner prefers to skip
-- through the primary key, which reads a hundred times the pages. A range is summed up when the next
-- one begins, not by the next vacuum.
CREATE INDEX telemetry_measured_at ON flights.telemetry
    USING brin (measured_at) WITH (pages_per_range = 8, autosummarize = on);

-- The few anomalies that nobody has looked at, newest first.
CREATE INDEX anomaly_open ON flights.anomaly (measured_at DESC) WHERE NOT resolved;

-- The board by status; the columns that are shown are in the index, the table is not read.
CREATE INDEX flight_status ON flights.flight (status, launch DESC) INCLUDE (flight, rocket, pad);
