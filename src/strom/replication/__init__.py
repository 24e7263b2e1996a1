"""A partition as its leader and its followers see it."""
