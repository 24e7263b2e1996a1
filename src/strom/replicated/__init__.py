"""The one machine: decide, append, apply, wait, answer."""
