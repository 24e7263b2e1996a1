"""The test kit: a broker for pytest; fake clock and disk."""
