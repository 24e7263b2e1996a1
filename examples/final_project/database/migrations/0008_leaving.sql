-- Let a day of measurements go; return how many went. Only the owner may: not the pipeline.
-- A day leaves by dropping its table. One without a partition is in the default one, which stays.
CREATE FUNCTION flights.drop_telemetry_day(day date) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE
    name text := 'telemetry_' || to_char(day, 'YYYYMMDD');
    begins timestamptz := day::timestamp AT TIME ZONE 'UTC';
    ends timestamptz := (day + 1)::timestamp AT TIME ZONE 'UTC';
    gone bigint;
BEGIN
    IF to_regclass('flights.' || name) IS NULL THEN
        DELETE FROM flights.telemetry_default WHERE measured_at >= begins AND measured_at < ends;
        GET DIAGNOSTICS gone = ROW_COUNT;
    ELSE
        EXECUTE format('SELECT count(*) FROM flights.%I', name) INTO gone;
        EXECUTE format('DROP TABLE flights.%I', name);
    END IF;
    RETURN gone;
END
$$;
REVOKE ALL ON FUNCTION flights.drop_telemetry_day(date) FROM PUBLIC;
