"""Strom and Apache Kafka side by side; `make bench` runs it."""
