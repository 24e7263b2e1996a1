"""The final project: rocket flights from a web site to a database, by way of topics.

    site ──▶ scraper ──▶ topics ──▶ (processing) ──▶ database ──▶ archive

`site/` is what is scraped, `scraper/` fetches it by a schedule and writes facts to topics,
`database/` is PostgreSQL with all of its settings as code, `archive` keeps what leaves it as
Parquet, and `dags/` holds the same jobs for Airflow. Each of them is a program; `deployment/` keeps
all of them running in a directory. docs/final-project.md has the reasons.
"""
