"""The whole project at once: a site, a scraper, a broker, Spark and a database, for two minutes."""
