-- What the master data adds to a flight; null while it is not known.
ALTER TABLE flights.flight
    ADD COLUMN maker text,
    ADD COLUMN payload_kg integer,
    ADD COLUMN nation text;

-- What could not be used: where it is in its topic, and why it was left out.
CREATE TABLE flights.rejected (
    topic text NOT NULL,
    partition integer NOT NULL,
    "offset" bigint NOT NULL,
    reason text NOT NULL,
    text text,
    PRIMARY KEY (topic, partition, "offset")
);
