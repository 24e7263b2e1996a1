"""What Apache Airflow reads: its DAGs, its pool, and which packages it needs."""
