-- A day that has rows in the default partition stays there: PostgreSQL refuses to make a partition
-- that these rows belong to. They are from a write that waited while the day left the database, and
-- leave with the day's next archiving.
CREATE OR REPLACE FUNCTION flights.ensure_telemetry_day(day date) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
DECLARE
    name text := 'telemetry_' || to_char(day, 'YYYYMMDD');
    begins timestamptz := day::timestamp AT TIME ZONE 'UTC';
    ends timestamptz := (day + 1)::timestamp AT TIME ZONE 'UTC';
BEGIN
    IF to_regclass('flights.' || name) IS NULL AND NOT EXISTS (
        SELECT FROM flights.telemetry_default WHERE measured_at >= begins AND measured_at < ends
    ) THEN
        EXECUTE format(
            'CREATE TABLE flights.%I PARTITION OF flights.telemetry FOR VALUES FROM (%L) TO (%L)',
            name, begins, ends);
    END IF;
END
$$;
