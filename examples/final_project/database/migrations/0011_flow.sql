-- When a sink took something last: a project that runs and stores nothing is told from one that works.
ALTER TABLE flights.sink_progress ADD COLUMN written_at timestamptz NOT NULL DEFAULT now();
CREATE FUNCTION flights.note_written_at() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    NEW.written_at := now();
    RETURN NEW;
END
$$;
CREATE TRIGGER note_written_at BEFORE UPDATE ON flights.sink_progress
    FOR EACH ROW EXECUTE FUNCTION flights.note_written_at();
