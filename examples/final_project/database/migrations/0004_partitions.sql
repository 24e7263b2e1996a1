-- Make the partition of a day; nothing happens if it is there.
CREATE FUNCTION flights.ensure_telemetry_day(day date) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
DECLARE
    name text := 'telemetry_' || to_char(day, 'YYYYMMDD');
    begins timestamptz := day::timestamp AT TIME ZONE 'UTC';
    ends timestamptz := (day + 1)::timestamp AT TIME ZONE 'UTC';
BEGIN
    IF to_regclass('flights.' || name) IS NULL THEN
        EXECUTE format(
            'CREATE TABLE flights.%I PARTITION OF flights.telemetry FOR VALUES FROM (%L) TO (%L)',
            name, begins, ends);
    END IF;
END
$$;
REVOKE ALL ON FUNCTION flights.ensure_telemetry_day(date) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION flights.ensure_telemetry_day(date) TO flights_writer;
