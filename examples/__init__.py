"""Whole programs that use Strom the way its users do."""
