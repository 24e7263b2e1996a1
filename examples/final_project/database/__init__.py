"""PostgreSQL for the results: server, schema, roles and settings, all as code."""
