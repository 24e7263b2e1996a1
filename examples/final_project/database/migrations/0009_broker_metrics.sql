-- What the brokers tell of themselves: the newest value of each series.
CREATE TABLE flights.broker_metric (
    broker text NOT NULL,
    metric text NOT NULL,
    -- As JSON, by the order of their names.
    labels text NOT NULL,
    value double precision NOT NULL,
    told_at timestamptz NOT NULL,
    PRIMARY KEY (broker, metric, labels)
)
-- Most rows change with every look at the brokers: room for the new version in the same page.
WITH (fillfactor = 50);
