-- How far each sink is: written in the transaction of the rows, so both are there or neither.
CREATE TABLE flights.sink_progress (
    sink text NOT NULL,
    topic text NOT NULL,
    partition integer NOT NULL,
    end_offset bigint NOT NULL CHECK (end_offset >= 0),
    PRIMARY KEY (sink, topic, partition)
)
-- One row per partition, changed with every batch: room for the new version in the same page.
WITH (fillfactor = 50);
