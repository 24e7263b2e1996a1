-- Who may do what. The writer is the pipeline, the reader everybody who looks.
-- Roles belong to the whole server, so another database of it may have made them.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'flights_writer') THEN
        CREATE ROLE flights_writer LOGIN;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'flights_reader') THEN
        CREATE ROLE flights_reader LOGIN;
    END IF;
END
$$;

CREATE SCHEMA flights;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA flights TO flights_writer, flights_reader;
ALTER DEFAULT PRIVILEGES IN SCHEMA flights
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO flights_writer;
ALTER DEFAULT PRIVILEGES IN SCHEMA flights GRANT SELECT ON TABLES TO flights_reader;

-- A forgotten query of somebody who looks must not hold up vacuum, nor the pipeline.
ALTER ROLE flights_reader SET statement_timeout = '30s';
ALTER ROLE flights_reader SET default_transaction_read_only = on;
ALTER ROLE flights_writer SET lock_timeout = '10s';
ALTER ROLE flights_writer SET idle_in_transaction_session_timeout = '60s';
