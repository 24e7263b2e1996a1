"""Transactions: which producer has which transactional id, and what becomes of what it wrote."""
