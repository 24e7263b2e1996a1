"""What Spark does between the topics and the database: clean, enrich, sum up, find what is odd."""
